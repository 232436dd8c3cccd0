// Where the reader is: the part of the address after the hash sign, so that any static host serves every view.

import { useEffect, useState } from 'preact/hooks';
import { href, parse, viewOf, type Place } from './place';

export { href, viewOf, type Href, type Place } from './place';

/** Goes to a place; replace leaves no step to go back to. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(history.state, '', to);
    moved();
  } else {
    location.hash = to;
  }
}

// The search of the page for what does not exist is a form, whose text arrives as ?q=.
const asked = new URLSearchParams(location.search).get('q');
if (asked !== null && !location.hash) {
  history.replaceState(history.state, '', location.pathname + href(['search'], { q: asked }));
}

const listeners = new Set<(place: Place) => void>();
let current = parse(location.hash);

// The steps of the history have numbers, for where the reader had scrolled to.
const scrolled = new Map<number, number>();
let step = numberOf(history.state) ?? 0;
let steps = step;

function numberOf(state: unknown): number | undefined {
  const kept = (state as { step?: unknown } | null)?.step;
  return typeof kept === 'number' ? kept : undefined;
}

// What had the focus when the reader went on, while the new view has not taken it.
let left: { focused: Element | null } | undefined;

/**
 * Whether the reader has just come to a view, and has not gone on to something else since. True once
 * a view: then it takes the focus.
 */
export function arrived(): boolean {
  const now = document.activeElement;
  const is = !!left && (now === left.focused || now === document.body || !now);
  left = undefined;
  return is;
}

/** Scrolls once the page is as long as it needs to be, unless the reader begins to scroll. */
function scrollBack(to: number): void {
  const done = new AbortController();
  const attempt = () => {
    scrollTo(0, to);
    if (Math.abs(scrollY - to) < 2) {
      done.abort();
    }
  };
  const growing = new ResizeObserver(attempt);
  done.signal.addEventListener('abort', () => growing.disconnect());
  for (const event of ['wheel', 'touchstart', 'keydown', 'pointerdown', 'popstate']) {
    addEventListener(event, () => done.abort(), { signal: done.signal, passive: true });
  }
  setTimeout(() => done.abort(), 5000);
  growing.observe(document.body); // which also calls attempt a first time
}

function moved(): void {
  const next = parse(location.hash);
  const kept = numberOf(history.state);
  const isNew = viewOf(next) !== viewOf(current);
  if (kept === undefined) {
    step = ++steps;
    history.replaceState({ step }, '');
    if (isNew) {
      scrollTo(0, 0);
    } else if (next.path.join('/') !== current.path.join('/')) {
      document.querySelector('main .tabs')?.scrollIntoView({ block: 'nearest' });
    }
  } else if (kept !== step) {
    step = kept;
    scrollBack(scrolled.get(step) ?? 0);
  }
  if (isNew) {
    left = { focused: document.activeElement };
  }
  current = next;
  listeners.forEach((listener) => listener(next));
}

history.scrollRestoration = 'manual';
history.replaceState({ step }, '');
addEventListener('scroll', () => scrolled.set(step, scrollY), { passive: true });
addEventListener('hashchange', moved);

/** The place where the reader is. */
export function usePlace(): Place {
  const [place, set] = useState(current);
  useEffect(() => {
    listeners.add(set);
    set(current);
    return () => void listeners.delete(set);
  }, []);
  return place;
}
