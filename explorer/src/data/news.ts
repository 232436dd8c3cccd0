// What is new for an account, from what was done to it. Nothing here needs a browser.

import type { Entry } from './ops';
import type { Person } from './site';

/** What is new since a time, the newest first. */
export interface News {
  gained: Person[];
  lost: Person[];
  /** Who blocks or mutes since. */
  against: Person[];
  /** Whose other tags, or what was undone again, are new. */
  others: Person[];
}

/** What an account says, as far as entries tell. */
type Said = { held?: boolean; block?: boolean; mute?: boolean };

const noTags = { block: false, mute: false };
const ofTag = (tag: string, is: boolean): Said => (tag === 'block' || tag === 'mute' ? { [tag]: is } : {});

const after = ({ action, tag }: Entry): Said =>
  action === 'follow' || action === 'unfollow' ? { held: action === 'follow', ...noTags } : { held: true, ...ofTag(tag, action === 'tag') };

// Only what is there can be removed, and only what is not there added.
const before = ({ action, tag }: Entry): Said =>
  action === 'follow' ? { held: false, ...noTags } : { held: true, ...ofTag(tag, action === 'untag') };

const isAgainst = ({ held, block, mute }: Said): boolean => !!held && !!(block || mute);
const follows = (said: Said): boolean => !!said.held && !isAgainst(said);

/**
 * Sorts whoever did something since a time by what came of it. The newest entries are first. Older ones say what was before;
 * a block that is older than all of them is not known.
 */
export function newsOf(entries: readonly Entry[], since: number): News {
  const people = new Map<string, { person: Person; then: Said; now: Said; isNew: boolean }>();
  for (let i = entries.length - 1; i >= 0; i--) {
    const entry = entries[i];
    if (!entry) {
      continue;
    }
    const { address } = entry.person;
    const { then, now } = people.get(address) ?? { then: {}, now: {} };
    people.delete(address); // whose last entry is newer comes later
    const isNew = entry.time >= since;
    const made = { ...now, ...after(entry) };
    people.set(address, { person: entry.person, then: isNew ? { ...before(entry), ...then } : made, now: made, isNew });
  }
  const news: News = { gained: [], lost: [], against: [], others: [] };
  for (const { person, then, now, isNew } of [...people.values()].reverse()) {
    if (isNew) {
      const group = isAgainst(now) && !isAgainst(then) ? 'against' : follows(now) && !follows(then) ? 'gained' : follows(then) && !follows(now) ? 'lost' : 'others';
      news[group].push(person);
    }
  }
  return news;
}

/* Without history: what was there at two visits */

/** What was seen of an account at a visit. */
export interface Seen {
  /** The state of the site. */
  asOf: number;
  followers?: number;
  following?: number;
  /** The addresses of all followers, if they are few. */
  ids?: string[];
}

/** Two visits, and when the second one was, by the reader's clock. */
export interface Visits {
  before?: Seen;
  now: Seen;
  at: number;
}

const pause = 30 * 60_000;

/**
 * The visits after another look. Looks soon after each other are one visit, and what was new stays so until the site
 * has something newer.
 */
export function visited(visits: Visits | undefined, now: Seen, at: number): Visits {
  if (!visits) {
    return { now, at };
  }
  const isNext = now.asOf > visits.now.asOf && Math.abs(at - visits.at) > pause;
  const before = isNext ? visits.now : visits.before;
  return { ...(before && { before }), now, at };
}

const count = (value: unknown): { n?: number } => (typeof value === 'number' && value >= 0 ? { n: value } : {});

function seenOf(value: unknown): Seen | undefined {
  const { asOf, followers, following, ids } = (value ?? {}) as Record<string, unknown>;
  if (typeof asOf !== 'number') {
    return undefined;
  }
  const [a, b] = [count(followers).n, count(following).n];
  const isList = Array.isArray(ids) && ids.every((id) => typeof id === 'string' && /^0x[0-9a-f]{40}$/.test(id));
  return { asOf, ...(a !== undefined && { followers: a }), ...(b !== undefined && { following: b }), ...(isList && { ids: ids as string[] }) };
}

/** Visits as they were kept, of which anything may have become. */
export function visitsOf(value: unknown): Visits | undefined {
  const kept = (value ?? {}) as Record<string, unknown>;
  const [before, now] = [seenOf(kept['before']), seenOf(kept['now'])];
  return now && typeof kept['at'] === 'number' ? { ...(before && { before }), now, at: kept['at'] } : undefined;
}

/** Who came and who went between two visits; undefined if one of them has not all. */
export function between(before: Seen, now: Seen): { came: string[]; gone: string[] } | undefined {
  if (!before.ids || !now.ids) {
    return undefined;
  }
  const [then, still] = [new Set(before.ids), new Set(now.ids)];
  return { came: now.ids.filter((id) => !then.has(id)), gone: before.ids.filter((id) => !still.has(id)) };
}
