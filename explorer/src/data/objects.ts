// Which objects of the site a view is made from.

import { hex } from './hex';
import { isWhole, site } from './site';
import type { Kind, Subject } from './people';

const shardSize = 1000;
const inBucket = 20; // rows, at most, that are in the bucket of an account or a list

/** The keys of objects; more says how many there are beyond those. */
export interface Objects {
  keys: string[];
  more: number;
}

const most = 12;
const bounded = (count: number, key: (n: number) => string): Objects => ({
  keys: Array.from({ length: Math.min(count, most) }, (_, n) => key(n)),
  more: Math.max(0, count - most),
});

const base = async (): Promise<string> => {
  const path = String((await site.root()).config['base_path'] ?? '');
  return path && `${path}/`;
};

/** Those that a profile shows. */
export async function profileObjects({ address, list }: Subject): Promise<Objects> {
  const parts = (await isWhole()) ? ['details', 'stats', 'lists', 'tags', 'taggedAs', 'badges'] : ['details', 'badges'];
  const of = (await isWhole()) ? `users/${address}` : list && `lists/${list}`;
  const prefix = await base();
  return bounded(of ? parts.length : 0, (n) => `${prefix}${of}/${parts[n]}`);
}

/** The name of a bucket: the beginning of a hash of what is in it; undefined where browsers do not hash, over plain HTTP. */
async function bucketOf(folder: 'users' | 'tokens', of: string, digits: unknown): Promise<string | undefined> {
  const hash = await globalThis.crypto.subtle?.digest('SHA-256', new TextEncoder().encode(of));
  return hash && `_search/${folder}/${hex(hash).slice(0, Number(digits))}`;
}

/** Those that have the rows of a list: as many as total says, blocked and muted accounts too. */
export async function rowObjects({ address, list, isList }: Subject, kind: Kind, total: number): Promise<Objects> {
  const root = await site.root();
  const prefix = await base();
  const isFollowers = kind === 'followers';
  if (!(await isWhole())) {
    return total < 10 ? bounded(1, () => `${prefix}lists/${list}/searchFollowing`) : bounded(Math.ceil(total / shardSize), (n) => `_search/lists/${list}/${n}`);
  }
  if (total > inBucket) {
    const of = isFollowers ? `followers/${address}` : `lists/${list}`;
    return bounded(Math.ceil(total / shardSize), (n) => `_search/${of}/${n}`);
  }
  const bucket = await (isFollowers ? bucketOf('users', address, root['user_bucket_digits']) : bucketOf('tokens', list, root['token_bucket_digits']));
  return bounded(1, () => bucket ?? `${prefix}${isList ? `lists/${list}` : `users/${address}`}/${kind}`);
}
