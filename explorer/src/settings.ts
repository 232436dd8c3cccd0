// What the reader has chosen, kept in the browser.

import { useEffect, useState } from 'preact/hooks';

/** As the system is, or always the same. */
export const themes = ['auto', 'light', 'dark'] as const;

export interface Settings {
  theme: (typeof themes)[number];
  /** Whether there are pictures at all. */
  pictures: boolean;
  /** Whether they may come from the hosts that profiles name; undefined until the reader has said. */
  others: boolean | undefined;
  /** Whether single keys do something outside of fields. */
  shortcuts: boolean;
  /** Whether accounts that were looked at are kept (data/mine.ts). */
  viewed: boolean;
}

const name = 'followpress';
const usual: Settings = { theme: 'auto', pictures: true, others: undefined, shortcuts: true, viewed: true };
const listeners = new Set<(settings: Settings) => void>();

function read(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Settings>;
    return {
      theme: themes.find((theme) => theme === kept.theme) ?? usual.theme,
      pictures: kept.pictures !== false,
      others: typeof kept.others === 'boolean' ? kept.others : undefined,
      shortcuts: kept.shortcuts !== false,
      viewed: kept.viewed !== false,
    };
  } catch {
    return usual; // no storage, or something else in it
  }
}

let current = read();

function show(): void {
  document.documentElement.dataset['theme'] = current.theme;
  listeners.forEach((listener) => listener(current));
}

/** Changes settings, for this page at once and for later ones. */
export function choose(changes: Partial<Settings>): void {
  current = { ...current, ...changes };
  try {
    localStorage.setItem(name, JSON.stringify(current));
  } catch {
    // they hold until the page is closed
  }
  show();
}

/** The settings, and again when they change. */
export function useSettings(): Settings {
  const [settings, set] = useState(current);
  useEffect(() => {
    listeners.add(set);
    return () => void listeners.delete(set);
  }, []);
  return settings;
}

// Other tabs choose too. Without a key, all that was kept is gone.
addEventListener('storage', ({ key }) => {
  if (key === name || key === null) {
    current = read();
    show();
  }
});
show();
