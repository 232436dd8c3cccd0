// A picture of a profile, once it is in sight, may be shown, and is there.

import type { RefObject } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useSettings } from '../settings';
import { drawn, load, type Kind } from './draw';
import { ask, sourceOf } from './policy';

const calls = new WeakMap<Element, () => void>();
const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) {
        calls.get(target)?.();
        sight.unobserve(target);
      }
    }
  },
  { rootMargin: '200px' },
);

/** Calls once when an element comes into sight; returns what ends that. */
function onSight(element: Element, call: () => void): () => void {
  calls.set(element, call);
  sight.observe(element);
  return () => {
    calls.delete(element);
    sight.unobserve(element);
  };
}

/** The picture that a text of a profile names, in an element that is there without it too. */
export function usePicture(text: string, box: RefObject<HTMLElement | null>, kind: Kind = 'avatar') {
  const settings = useSettings();
  const source = sourceOf(text, settings);
  const [, redraw] = useState(0);
  const url = source && drawn(source, kind);
  useEffect(() => {
    const element = box.current;
    if (!element || url) {
      return;
    }
    let isWanted = true;
    const end = onSight(element, () => {
      ask(text, settings);
      if (source) {
        void load(source, kind).then((found) => found && isWanted && redraw((n) => n + 1));
      }
    });
    return () => {
      isWanted = false;
      end();
    };
  }, [text, source, kind, settings.others]);
  return url || undefined;
}
