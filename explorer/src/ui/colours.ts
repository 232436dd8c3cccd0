// Colours for canvases, which do not know the variables of the style sheets.

import { useEffect, useState } from 'preact/hooks';
import { useSettings } from '../settings';

/** The colours that variables have at the moment. */
export function colours<Name extends string>(...names: Name[]): Record<Name, string> {
  const probe = document.createElement('span');
  probe.style.setProperty('transition', 'none', 'important'); // or a colour would begin with the one before
  document.body.append(probe);
  const all = {} as Record<Name, string>;
  for (const name of names) {
    probe.style.color = `var(--${name})`;
    all[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return all;
}

/** Changes whenever the colours do. */
export function useTheme(): string {
  const { theme } = useSettings();
  const [system, set] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const query = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => set(query.matches);
    query.addEventListener('change', changed);
    return () => query.removeEventListener('change', changed);
  }, []);
  return theme === 'auto' ? (system ? 'dark' : 'light') : theme;
}
