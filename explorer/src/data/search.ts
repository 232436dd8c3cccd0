// Search: over the most followed accounts as one types, by exact name, address or number, and over all.

import { better, entriesOf, find, same, termOf, type Entry, type Hit } from './match';
import { isAddress, isWhole, object, once, site, top, type Person } from './site';

export { better, marked, same, termOf, type Hit } from './match';

let entries: Entry[] = [];

/** Reads the most followed accounts. Until then suggest finds none. */
export const ready = once(async () => {
  entries = entriesOf((await top()).people);
  return entries;
}, true);

/** The account with what the most followed accounts say about it, as soon as they are read. */
const indexed = (asked: Person): Person =>
  entries.find(({ person, folded }) => (asked.address ? person.address === asked.address : folded === asked.name))?.person ?? asked;

/** Hits of both kinds, best first, none twice. */
function merged(exactly: readonly Hit[], others: readonly Hit[]): Hit[] {
  const looked = exactly.map((hit) => (hit.token ? hit : { ...hit, person: indexed(hit.person) }));
  const known = new Set(looked.map(({ person, token }) => (token ? '' : person.address)));
  return [...looked, ...others.filter(({ person }) => !known.has(person.address))].sort(better);
}

/** What a text finds among the most followed, and exactly, best first. */
export const suggest = (typed: string, exactly: readonly Hit[]): Hit[] => merged(exactly, find(entries, termOf(typed)));

// A search makes this many requests, with those of the root and the most followed, until its reader wants more.
const mostRequests = 6;
const requestsOfAll = 2;

async function person(user: string): Promise<Hit | null> {
  const found = await site.find(user);
  return found && { rank: same, person: indexed({ address: found.address, name: isAddress(user) ? '' : user, avatar: '', list: found.token }) };
}

async function list(token: string): Promise<Hit | null> {
  try {
    const { address, ens } = await site.list(token).details();
    return { rank: same, token, person: { address, name: ens.name ?? '', avatar: ens.avatar ?? '' } };
  } catch (error) {
    if ((error as { status?: unknown }).status === 404) {
      return null;
    }
    throw error;
  }
}

/** Whoever is looked up for a term. */
function lookups(term: string): (() => Promise<Hit | null>)[] {
  const asked = [() => person(term)];
  if (!term.includes('.') && !isAddress(term)) {
    asked.push(() => person(term + '.eth'));
  }
  if (/^(0|[1-9]\d{0,77})$/.test(term)) {
    asked.push(() => list(term));
  }
  return asked;
}

const left = (term: string): number => mostRequests - requestsOfAll - lookups(term).length;

/** A hit with the number of followers. Of an address that is neither among the most followed nor has a list, the graph may not know it. */
async function counted(hit: Hit, isAsked: boolean): Promise<Hit> {
  const { person, token } = hit;
  if (token || person.followers !== undefined || !person.address || !(person.name || person.list) || !entries.length || !(await isWhole())) {
    return hit;
  }
  const isOfAll = (await top()).total <= entries.length; // then those that are not there have none
  const followers = isOfAll ? 0 : isAsked ? (await site.user(person.address).stats()).followers_count : undefined;
  return followers === undefined ? hit : { ...hit, person: { ...person, followers } };
}

/** The accounts and the list whose whole name, address or number a text is. */
export async function exact(typed: string): Promise<Hit[]> {
  const term = termOf(typed);
  if (!term) {
    return [];
  }
  const hits = (await Promise.all(lookups(term).map((look) => look()))).filter((hit) => hit !== null);
  const first = ({ token, person }: Hit) => hits.findIndex((other) => other.token === token && other.person.address === person.address);
  const different = hits.filter((hit, i) => !hit.person.address || first(hit) === i);
  return Promise.all(different.map((hit, i) => counted(hit, i < left(term))));
}

/** What a text has found so far. */
export interface Found {
  term: string;
  /** Best first. Of very many, these are the best. */
  hits: readonly Hit[];
  /** How many there are, of accounts and lists. */
  total: number;
  seen: ReadonlySet<string>;
  /** How many of the most followed were searched. */
  most: number;
  /** How many of all accounts with a rank were searched, and of how many; 0 if that is not known yet. */
  read: number;
  of: number;
  /** Whether there may be more, and whether these can be read. */
  isPart: boolean;
  isWhole: boolean;
}

const kept = 10_000;
const shardSize = 1000;
const atOnce = 6;

type RankedRow = [address: string, name: string, avatar: string, header: string, ranks: number[], counts: [mutuals: number, following: number, followers: number]];
interface Shard {
  total: number;
  entries: RankedRow[];
}

const entriesOfShard = ({ entries }: Shard): Entry[] =>
  entriesOf(entries.map(([address, name, avatar, , , counts]) => ({ address, name, avatar, followers: counts[2] })));

/** Searches the accounts with a rank that were not searched yet, step by step: of a site with the whole API only. */
export async function* further(found: Found): AsyncGenerator<Found> {
  const seen = new Set(found.seen);
  while (found.isPart) {
    const { term, of } = found;
    const begin = found.read / shardSize;
    const count = of ? Math.min(atOnce, Math.ceil(of / shardSize) - begin) : 1;
    const shards = await Promise.all(Array.from({ length: count }, (_, i) => object<Shard>(`../_search/ranked/${begin + i}`)));
    const total = of || (shards[0]?.total ?? 0);
    if (shards.some((shard) => shard.total !== total)) {
      throw new Error('_search/ranked: these are objects of two sites');
    }
    const hits = shards.flatMap((shard) => find(entriesOfShard(shard), term)).filter(({ person }) => !seen.has(person.address));
    hits.forEach(({ person }) => seen.add(person.address));
    const read = Math.min(total, (begin + count) * shardSize);
    const best = [...found.hits, ...hits].sort(better).slice(0, kept);
    found = { ...found, seen, hits: best, total: found.total + hits.length, read, of: total, isPart: read < total };
    yield found;
  }
}

/** What a text finds at first: if the site has few accounts, among all. */
export async function search(typed: string): Promise<Found> {
  const [exactly, { length: most }, whole, { counts }] = await Promise.all([ready().then(() => exact(typed)), ready(), isWhole(), site.root()]);
  const term = termOf(typed);
  const hits = suggest(typed, exactly);
  const seen = new Set(hits.map(({ person, token }) => (token ? '' : person.address)));
  let found: Found = { term, hits, total: hits.length, seen, most, read: 0, of: 0, isPart: true, isWhole: whole };
  if (whole && (counts['accounts'] ?? Infinity) <= left(term) * shardSize) {
    for await (const next of further(found)) {
      found = next;
    }
  }
  return found;
}
