// Where the reader is: the part of the address after the hash sign, so that any static host serves every view.

import { useEffect, useState } from 'preact/hooks';

/** A place in the explorer: `#/a/alice.eth/followers?sort=earliest` has the path ['a', 'alice.eth', 'followers']. */
export interface Place {
  path: string[];
  query: URLSearchParams;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // a percent sign that stands for itself
  }
}

/** Reads a place from the hash of an address. */
export function parse(hash: string): Place {
  const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

/** The address of a place, for links. Empty values of the query are left out. */
export function href(path: readonly string[], query: Record<string, string | undefined> = {}): string {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(pairs).toString();
  return '#/' + path.map(encodeURIComponent).join('/') + (text && '?' + text);
}

/** Goes to a place; replace leaves no step to go back to. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, '', to);
    dispatchEvent(new HashChangeEvent('hashchange'));
  } else {
    location.hash = to;
  }
}

/** The place where the reader is. */
export function usePlace(): Place {
  const [place, set] = useState(() => parse(location.hash));
  useEffect(() => {
    const moved = () => set(parse(location.hash));
    addEventListener('hashchange', moved);
    return () => removeEventListener('hashchange', moved);
  }, []);
  return place;
}
