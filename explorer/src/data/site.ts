// A site of either API, and the two objects that it has for the explorer. The modules beside this one
// are the only ones that know the API; views have what they return.

import { openSite, type Proof } from '@followpress/client';
import type { Pages, Range, Read } from '../ui/pages';

/** An account as rows show it. */
export interface Person {
  address: string;
  name: string;
  avatar: string;
  followers?: number;
  list?: string;
  tags?: readonly string[];
}

/** An account of a leaderboard. */
export interface Ranked extends Person {
  /** Place in this order, from 1. */
  place: number;
  counts: Partial<Record<Board, number>>;
}

export const allBoards = ['followers', 'following', 'mutuals', 'top8', 'blocks', 'blocked', 'mutes', 'muted'] as const;
export type Board = (typeof allBoards)[number];

/** The object network: sizes and distributions. */
export interface Network {
  as_of: string;
  accounts: number;
  lists: number;
  primary_lists: number;
  records: number;
  follows: number;
  names: number;
  /** How many accounts have how many followers: [followers, accounts], ascending. */
  followers: [number, number][];
  following: [number, number][];
  tags: [string, number][];
  growth: [string, number][];
}

/** The base of the site: the folder above the explorer's. */
export const base = new URL('..', document.baseURI).href;
const none = (): void => undefined;

const words = (text?: string | null): string[] => text?.match(/\S+/g) ?? [];
/** Where the browser keeps something about this site. */
export const placeOf = (what: 'own' | 'first' | 'refreshers' | 'mine' | 'viewed' | 'visits'): string => `followpress ${what} ${base}`;
/** Keeps something about this site in the browser, '' for nothing. */
export function keep(what: Parameters<typeof placeOf>[0], text: string): void {
  try {
    localStorage.setItem(placeOf(what), text);
  } catch {
    // no storage
  }
}
export const kept = (what: Parameters<typeof placeOf>[0]): string[] => {
  try {
    return words(localStorage.getItem(placeOf(what)));
  } catch {
    return []; // no storage
  }
};

/** What is checked, and what came of it (data/proof.ts). */
export const seal = {
  /** Public keys: of the reader, those that the site named when this browser first saw it, and those that it names. */
  own: kept('own'),
  first: kept('first'),
  named: words(document.querySelector<HTMLMetaElement>('meta[name="followpress-keys"]')?.content),
  /** Those that are used; none if nothing is checked. */
  keys: [] as readonly string[],
  /** Those of the reader for what a fallback refreshes. */
  refreshers: kept('refreshers'),
  /** The objects that were checked, with why they are not believed. */
  objects: new Map<string, Error | undefined>(),
  proof: undefined as Proof | undefined,
  tell: none,
};
const { own, first: before, named, objects } = seal;
// What a site claims by itself is not worth a page without data; what the reader asks for is.
const checks = own[0] ?? (await crypto.subtle?.importKey('raw', new Uint8Array(32), 'Ed25519', true, ['verify']).catch(none));
seal.keys = own[0] ? own : !checks ? [] : before[0] ? before : named;

const open = (how: RequestInit) => openSite(base, {
  fetch: (url, init) => fetch(url, { ...how, ...init }),
  keys: seal.keys[0] ? [...seal.keys] : undefined,
  refreshedKeys: seal.refreshers[0] ? seal.refreshers : undefined,
  verified: (proof) => {
    seal.proof = proof;
    seal.tell();
  },
  checked: (key, error) => {
    objects.set(key, error);
    seal.tell();
  },
});
let opened = open({});
export let site = opened;

/**
 * How often what is on the screen was renewed, and how often because another site was published; what draws it again, who
 * is told that it could not be read, and what replaces rows (data/live.ts).
 */
export const renewal = {
  turn: 0,
  replaced: 0,
  draw: none,
  failed: none,
  rows<T>(pages: Pages<T>, read: Read<T>, ..._more: [total: number | undefined, range: Range, seen: () => number, moved: (by: number) => void]): void {
    pages.read = read;
  },
};

let after: RequestInit | undefined; // of objects that the client library does not read
let renewed = 0;

/** Reads the site anew from now on, as it is after these blocks. With shown, so does what is on the screen. */
export function renew(blocks: string, isShown: boolean): void {
  site = opened.after(blocks);
  after = { cache: 'no-store', headers: { 'X-After': blocks } };
  renewed++;
  if (isShown) {
    renewal.turn++;
    renewal.draw();
  }
}

/** Reads everything anew, since another site was published: views begin again, each with objects of that one. */
export function replace(): void {
  after = { cache: 'no-cache' };
  site = opened = open(after);
  objects.clear();
  renewed++;
  renewal.replaced++;
  renewal.turn++;
  renewal.draw();
}

/** Whether the site has the whole read API, or that of the specification. */
export const isWhole = once(async () => (await site.root()).config['api'] === 'efp');

/** Whether it says what happened lately (data/history.ts). */
export const hasHistory = async (): Promise<boolean> => !!(await site.root()).config['history_window'];

/** Whether it has the graph itself as files. */
export const hasData = async (): Promise<boolean> => !!(await site.root()).config['data'];

/** Keeps the result of a function that succeeded: until another site is published, or the page is renewed if it changes with accounts. */
export function once<T>(load: () => Promise<T>, changes = false): () => Promise<T> {
  let kept: Promise<T> | undefined;
  let at = 0;
  return () => {
    const now = changes ? renewed : renewal.replaced;
    if (at !== now) {
      at = now;
      kept = undefined;
    }
    const loading = (kept ??= load());
    loading.catch(() => kept === loading && (kept = undefined));
    return loading;
  };
}

/** An object by its place from here; null if there is none. */
export async function optional<T>(name: string, how: RequestInit = {}, isChecked = !!seal.keys[0]): Promise<T | null> {
  if (isChecked) {
    // What is asked for past the caches does not go with the root that is known.
    const { status, body, cause } = await (how.cache ? site.after('0:0') : site).answer('GET', new URL(name, document.baseURI).href.slice(base.length - 1));
    if (cause) {
      throw cause;
    }
    return status === 200 ? (JSON.parse(body) as T) : null;
  }
  const response = await fetch(new URL(name, document.baseURI), { ...how, ...after });
  // A bucket that may not be listed answers 403 for what is not there.
  if (response.status === 404 || response.status === 403) {
    return null;
  }
  if (!response.ok) {
    throw new Error(`${name}: status ${response.status}`);
  }
  return (await response.json()) as T;
}

export async function object<T>(name: string): Promise<T> {
  const found = await optional<T>(name);
  if (!found) {
    throw new Error(`${name}: there is none`);
  }
  return found;
}

export const network = once(() => object<Network>('network'));

type TopRow = [address: string, name: string, followers: number, list: string, avatar: string];

interface Top {
  total: number;
  accounts: TopRow[];
}

const ranking = ({ total, accounts }: Top) => ({
  total,
  people: accounts.map(([address, name, followers, list, avatar]): Person => ({ address, name, followers, list, avatar })),
});

/** The most followed accounts. */
export const top = once(async () => ranking(await object<Top>('top')), true);

/** The first of them; of a site without the object for that, all. */
export const first = once(async () => {
  const found = await optional<Top>('start');
  return found ? ranking(found) : top();
}, true);

/** The accounts that were followed last; none of a site that does not say. */
export const latest = once(async (): Promise<Person[]> => {
  if (!(await isWhole())) {
    return [];
  }
  const { latestFollows } = await site.discover();
  return latestFollows.map(({ address, name, avatar, followers }) => ({
    address,
    name: name ?? '',
    avatar: avatar ?? '',
    followers: Number(followers),
  }));
}, true);

/** Whether a user is an address, in any letter case, and not a name. */
export const isAddress = (user: string): boolean => /^0x[0-9a-f]{40}$/i.test(user);
