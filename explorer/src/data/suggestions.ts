// Whom the reader may want to follow: accounts that the site recommends, and those that whom they follow follow.

import { Follow, stateOf } from './rules';
import { mine } from './mine';
import { bitsFor, followed } from './relations';
import { isWhole, optional, site, type Person } from './site';

/** An account, and who of those whom the reader follows follow it, as far as was looked. */
export interface Suggestion {
  person: Person;
  by: Person[];
  isRecommended: boolean;
}

/** Objects that are read at most, beside those that marks are made from. */
const mostRequests = 12;
/** So many rows of an account are looked at, its first ones: they are one object. */
const looked = 1000;
const mostRecommended = 4;
const mostShown = 10;

type RecommendedRow = [address: string, name: string, avatar: string, ...unknown[]];

async function recommended(): Promise<Person[]> {
  const found = (await isWhole()) ? await optional<{ entries: RecommendedRow[] }>('../_search/recommended/0') : null;
  return (found?.entries ?? []).map(([address, name, avatar]) => ({ address, name, avatar }));
}

/** Whom an account follows. Where it is, how many it follows, and the rows are in an object each, at most. */
async function heldBy({ address }: Person, whole: boolean): Promise<{ people: Person[]; requests: number }> {
  const found = whole ? undefined : await site.find(address);
  if (found && !found.token) {
    return { people: [], requests: 1 };
  }
  const { total, rows } = await (found ? site.list(found.token) : site.user(address)).rows('following', { sort: 'earliest', limit: looked });
  const people = rows.filter(({ tags }) => stateOf(tags) === Follow).map((row): Person => ({ address: row.address, name: row.name, avatar: row.avatar, followers: row.followers ?? 0 }));
  return { people, requests: (found ? 2 : 1) + (total ? 1 : 0) };
}

/** Whom the most followed of some people follow: as many of these as there may be requests. */
async function friendsOf(people: readonly Person[], whole: boolean, most: number): Promise<Suggestion[]> {
  const all = new Map<string, Suggestion>();
  const each = whole ? 2 : 3;
  for (let next = 0, left = most; next < people.length && left >= each; ) {
    const some = people.slice(next, next + Math.floor(left / each));
    next += some.length;
    const held = await Promise.all(some.map((one) => heldBy(one, whole)));
    held.forEach((of, i) => {
      left -= of.requests;
      for (const person of of.people) {
        const known = all.get(person.address) ?? { person, by: [], isRecommended: false };
        known.by.push(some[i] as Person);
        all.set(person.address, known);
      }
    });
  }
  return [...all.values()];
}

export const byFollowers = (a: Person, b: Person): number => (b.followers ?? 0) - (a.followers ?? 0) || (a.address < b.address ? -1 : 1);

/** Recommended accounts first, then those that most whom the reader follows follow; null if nobody is the reader. */
export async function suggestions(): Promise<Suggestion[] | null> {
  const [of, whole, wanted] = await Promise.all([followed(), isWhole(), recommended()]);
  const { me } = mine();
  if (!of || !me) {
    return null;
  }
  const found = await friendsOf([...of.people.values()].sort(byFollowers), whole, mostRequests - 1);
  // Whoever is blocked or muted, or blocks or mutes, is nobody to suggest.
  const isNew = ({ address }: Person) => address !== me.address && !of.people.has(address) && !bitsFor(address, true);
  const known = new Map(found.map((one) => [one.person.address, one]));
  const first = wanted
    .filter(isNew)
    .slice(0, mostRecommended)
    .map((person): Suggestion => ({ person, by: known.get(person.address)?.by ?? [], isRecommended: true }));
  const isFirst = new Set(first.map(({ person }) => person.address));
  const others = found
    .filter(({ person }) => isNew(person) && !isFirst.has(person.address))
    .sort((a, b) => b.by.length - a.by.length || byFollowers(a.person, b.person));
  return [...first, ...others].slice(0, mostShown);
}
