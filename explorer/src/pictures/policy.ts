// Which pictures may be shown: what the operator has chosen (--pictures), and the reader.

import { useEffect, useState } from 'preact/hooks';
import { isInline } from './format';
import type { Settings } from '../settings';

const policy = document.querySelector<HTMLMetaElement>('meta[name="followpress-pictures"]')?.content ?? 'off';

/** Whether there are pictures at all. */
export const anyPictures = policy !== 'off';
/** Whether the reader decides about pictures of other hosts. */
export const readerDecides = policy === '';

/** The address of a picture of another host; undefined for what is none. */
export function elsewhere(text: string): URL | undefined {
  try {
    const url = new URL(text.trim());
    return url.protocol === 'https:' && !url.username && !url.password ? url : undefined;
  } catch {
    return undefined; // a text
  }
}

const isHost = (pattern: string, host: string): boolean => (pattern.startsWith('*.') ? host.endsWith(pattern.slice(1)) : host === pattern);

/** What is to be read for a picture: itself, if it is part of its URL, or a URL; undefined if it may not be shown. */
export function sourceOf(text: string, { pictures, others }: Settings): string | undefined {
  if (!anyPictures || !pictures || !text) {
    return undefined;
  }
  if (isInline(text)) {
    return text;
  }
  const url = elsewhere(text);
  if (!url) {
    return undefined;
  }
  if (readerDecides) {
    return others ? url.href : undefined;
  }
  if (policy.includes('://')) {
    return policy.replace('{url}', () => encodeURIComponent(url.href));
  }
  return policy.split(' ').some((pattern) => isHost(pattern, url.host)) ? url.href : undefined;
}

/* The question, once there is a picture that waits for the answer */

let isAsked = false;
const listeners = new Set<(asked: boolean) => void>();

/** Asks the reader, if a picture needs that. */
export function ask(text: string, { pictures, others }: Settings): void {
  if (!isAsked && readerDecides && pictures && others === undefined && !isInline(text) && elsewhere(text)) {
    isAsked = true;
    listeners.forEach((listener) => listener(true));
  }
}

/** Whether there is a picture that waits for the reader's answer. */
export function useAsked(): boolean {
  const [asked, set] = useState(isAsked);
  useEffect(() => {
    listeners.add(set);
    set(isAsked);
    return () => void listeners.delete(set);
  }, []);
  return asked;
}
