// What the reader has chosen, kept in the browser.

import { useEffect, useState } from 'preact/hooks';

export interface Settings {
  theme: 'auto' | 'light' | 'dark';
  /** Whether pictures are asked from the hosts that profiles name. */
  pictures: boolean;
}

const name = 'followpress';
const usual: Settings = { theme: 'auto', pictures: true };
const listeners = new Set<(settings: Settings) => void>();

function read(): Settings {
  try {
    const kept = JSON.parse(localStorage.getItem(name) ?? '{}') as Partial<Settings>;
    return {
      theme: kept.theme === 'light' || kept.theme === 'dark' ? kept.theme : usual.theme,
      pictures: kept.pictures !== false,
    };
  } catch {
    return usual; // no storage, or something else in it
  }
}

let current = read();

function show(): void {
  document.documentElement.dataset['theme'] = current.theme;
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
  listeners.forEach((listener) => listener(current));
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

show();
