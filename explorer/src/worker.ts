// The service worker, as the page sees it.

import { useEffect, useState } from 'preact/hooks';

const supported = 'serviceWorker' in navigator && isSecureContext;

let offline = false;
const listeners = new Set<(offline: boolean) => void>();

function set(now: boolean): void {
  offline = now;
  listeners.forEach((listener) => listener(now));
}

/** Whether what is shown is what was seen before. */
export function useOffline(): boolean {
  const [now, setNow] = useState(offline);
  useEffect(() => {
    listeners.add(setNow);
    setNow(offline);
    return () => void listeners.delete(setNow);
  }, []);
  return now;
}

async function register(): Promise<void> {
  const workers = navigator.serviceWorker;
  const isFirst = !workers.controller;
  const registration = await workers.register('sw.js');
  if (!isFirst) {
    // Browsers look for a new one when they like, this at once.
    await registration.update().catch(() => undefined); // offline
  }
  // Chromium forgets that a new one takes over if the old one had work at that time.
  setInterval(() => registration.waiting?.postMessage({ takeOver: true }), 3000);
  const { active } = await workers.ready;
  if (isFirst) {
    // It has not seen what this page has asked for until now, answered or not.
    new PerformanceObserver((list) => {
      const entries = list.getEntries() as PerformanceResourceTiming[];
      const seen = entries.filter(({ workerStart }) => workerStart === 0).map(({ name }) => name);
      active?.postMessage({ seen });
    }).observe({ type: 'resource', buffered: true });
  }
}

/** Starts the worker once the page has what it needs first. */
export function start(): void {
  if (!supported) {
    return;
  }
  navigator.serviceWorker.addEventListener('message', ({ data }: MessageEvent<{ offline?: boolean }>) => {
    if (typeof data.offline === 'boolean') {
      set(data.offline);
    }
  });
  addEventListener('online', () => set(false));
  // Pictures of slow hosts do not delay it.
  let begun = false;
  const begin = () => {
    if (!begun) {
      begun = true;
      register().catch((error: unknown) => console.warn(error));
    }
  };
  addEventListener('load', begin);
  setTimeout(begin, 2000);
}

const reloadedFor = 'followpress-reloaded';

/**
 * Loads a part of the explorer. The files of a page that was opened before the site was published again
 * may be gone: then the page is loaded again, once.
 */
export async function part<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    const own = document.querySelector('script[type="module"]')?.getAttribute('src') ?? '';
    const text = await fetch(location.pathname, { cache: 'no-cache' }).then((response) => (response.ok ? response.text() : own), () => own);
    if (text.includes(own) || !remember(own)) {
      throw error;
    }
    location.reload();
    return new Promise<T>(() => undefined); // the page ends here
  }
}

/** Whether the page was not reloaded for this script before. */
function remember(script: string): boolean {
  try {
    const isNew = sessionStorage.getItem(reloadedFor) !== script;
    sessionStorage.setItem(reloadedFor, script);
    return isNew;
  } catch {
    return false; // no storage: the reader decides
  }
}
