// A site of either API, and the two objects that it has for the explorer. The modules beside this one
// are the only ones that know the API; views have what they return.

import { openSite } from '@followpress/client';

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
export const site = openSite(base);

/** Whether the site has the whole read API, or that of the specification. */
export const isWhole = once(async () => (await site.root()).config['api'] === 'efp');

/** Keeps the result of a function that succeeded. */
export function once<T>(load: () => Promise<T>): () => Promise<T> {
  let kept: Promise<T> | undefined;
  return () => {
    const loading = (kept ??= load());
    loading.catch(() => kept === loading && (kept = undefined));
    return loading;
  };
}

async function object<T>(name: string): Promise<T> {
  const response = await fetch(new URL(name, document.baseURI));
  if (!response.ok) {
    throw new Error(`${name}: status ${response.status}`);
  }
  return (await response.json()) as T;
}

export const network = once(() => object<Network>('network'));

type TopRow = [address: string, name: string, followers: number, list: string, avatar: string];

/** The most followed accounts. */
export const top = once(async () => {
  const { total, accounts } = await object<{ total: number; accounts: TopRow[] }>('top');
  const people = accounts.map(([address, name, followers, list, avatar]): Person => ({ address, name, followers, list, avatar }));
  return { total, people };
});

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
});

/** Whether a user is an address, in any letter case, and not a name. */
export const isAddress = (user: string): boolean => /^0x[0-9a-f]{40}$/i.test(user);
