// Says that the site was replaced by a newer one, which the reader may want to see.

import { useEffect, useRef, useState } from 'preact/hooks';
import { Watch } from '../data/newer';
import { newerTexts } from '../texts/mine';
import type { Place } from '../router';

export function Newer({ place: { path } }: { place: Place }) {
  const [isNewer, set] = useState(false);
  const watch = useRef<Watch | undefined>(undefined);
  const at = path.join('/');
  const before = useRef(at);
  useEffect(() => {
    const one = (watch.current = new Watch(set));
    void one.start().catch(() => undefined); // the foot of the page says so
    return () => one.end();
  }, []);
  useEffect(() => {
    if (before.current !== at) {
      before.current = at;
      watch.current?.enter();
    }
  }, [at]);
  const renew = () => {
    watch.current?.renew();
    document.querySelector('main')?.focus({ preventScroll: true });
  };
  return isNewer ? (
    <div class="notice newer">
      <p>{newerTexts.newer}</p>
      <button type="button" onClick={renew}>
        {newerTexts.renew}
      </button>
    </div>
  ) : null;
}
