// What this browser has checked of the site, by which keys, and who gave it those.

import type { ProofError } from '@followpress/client';
import { base, placeOf, seal, site } from './site';

/** live: nobody signs what is answered from memory. incapable: this browser cannot check. The last six are of ProofError. */
export type State = 'live' | 'none' | 'incapable' | 'waiting' | 'good' | ProofError['code'];

/** The worst first. */
const codes: readonly ProofError['code'][] = ['altered', 'older', 'ahead', 'unsigned', 'between', 'unsupported'];

export interface Standing {
  state: State;
  /** How many objects are right, and how many are not believed. */
  right: number;
  refused: readonly string[];
  /** Who gave the keys. */
  by: 'reader' | 'site';
  /** Whether the site names other keys than it did first, and than those that were signed. */
  changed: boolean;
}

const words = (text: unknown): string[] => (typeof text === 'string' ? text.split(' ') : []);
const isSame = (a: readonly string[], b: readonly string[]): boolean => a.length === b.length && a.every((key) => b.includes(key));

/** The keys that a root names, which a key has signed that was believed before. */
const signedKeys = (): string[] => words(seal.proof?.root.config['explorer_keys']);

/** What is known now; isLive is what the root says. */
export function standing(isLive: boolean): Standing {
  const { own, first, named, keys, objects, proof } = seal;
  const refused = codes
    .map((code): [State, string[]] => [code, [...objects].filter(([, error]) => (error as ProofError | undefined)?.code === code).map(([key]) => key)])
    .find(([, all]) => all.length > 0);
  const unchecked = named[0] || first[0] ? 'incapable' : isLive ? 'live' : 'none';
  return {
    state: !keys[0] ? unchecked : (refused?.[0] ?? (proof ? 'good' : 'waiting')),
    right: [...objects.values()].filter((error) => !error).length,
    refused: refused?.[1] ?? [],
    by: own[0] ? 'reader' : 'site',
    changed: !own[0] && first.length > 0 && named.length > 0 && !isSame(first, named) && !isSame(signedKeys(), named),
  };
}

const listeners = new Set<() => void>();
seal.tell = () => {
  remember();
  listeners.forEach((listener) => listener());
};

/** Calls a function when something was checked. The result ends that. */
export function hear(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function keep(what: Parameters<typeof placeOf>[0], keys: readonly string[]): void {
  try {
    localStorage[keys[0] ? 'setItem' : 'removeItem'](placeOf(what), keys.join(' '));
  } catch {
    // no storage: they are forgotten with the page
  }
}

/** Keeps the keys that the site named, once they have proved right; then those that its signed root names. */
function remember(): void {
  if (seal.proof && !seal.own[0]) {
    const next = signedKeys();
    keep('first', next[0] ? next : seal.keys);
  }
}
remember();

const isKey = (text: string): boolean => /^[a-z\d.-]+\+[0-9a-f]{8}\+[\w+/]+={0,2}$/i.test(text) && !text.startsWith('PRIVATE+');

/**
 * Checks by these keys from now on, one a word, and what was refreshed by others, and loads the page again. False if one
 * is none; without any, all are forgotten.
 */
export function use(text: string, refreshers = ''): boolean {
  const keys = text.match(/\S+/g) ?? [];
  const others = refreshers.match(/\S+/g) ?? [];
  if (![...keys, ...others].every(isKey)) {
    return false;
  }
  keep('own', keys);
  keep('refreshers', others);
  if (!keys[0]) {
    keep('first', []);
  }
  location.reload();
  return true;
}

/** Whose note the site has, which nobody has checked; null for none. Of a live site nobody asks. */
export async function claimed(): Promise<string | null> {
  if ((await site.root()).live) {
    return null;
  }
  const response = await fetch(new URL('_site.note', base));
  return response.ok ? ((await response.text()).split('\n')[1] ?? null) : null;
}
