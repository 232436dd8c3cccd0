// Tabs: links beside each other. Where they do not fit, the current one is in sight, and an arrow at the edge says that
// there are more.

import type { Children } from '../elements';
import { useLayoutEffect, useRef } from 'preact/hooks';
import type { Text } from '../text';

export function Tabs({ label, children }: { label: Text; children: Children }) {
  const nav = useRef<HTMLElement>(null);
  const look = () => {
    const bar = nav.current;
    if (bar) {
      const passed = Math.abs(bar.scrollLeft); // negative from right to left
      bar.classList.toggle('before', passed > 1);
      bar.classList.toggle('after', passed + bar.clientWidth < bar.scrollWidth - 1);
    }
  };
  useLayoutEffect(() => {
    const sized = new ResizeObserver(look);
    sized.observe(nav.current as HTMLElement);
    return () => sized.disconnect();
  }, []);
  const current = useRef('');
  useLayoutEffect(() => {
    const tab = nav.current?.querySelector<HTMLAnchorElement>('[aria-current]');
    if (nav.current && tab && tab.hash !== current.current) {
      current.current = tab.hash;
      nav.current.scrollLeft = tab.offsetLeft - (nav.current.clientWidth - tab.offsetWidth) / 2;
    }
    look();
  });
  return (
    <nav ref={nav} class="tabs" aria-label={label} onScroll={look}>
      {children}
    </nav>
  );
}
