// Search: over the most followed accounts as one types, by exact name, address or number, and over all.

import { entriesOf, find, termOf, type Entry } from './match';
import { isAddress, once, site, top, type Person } from './site';

export { marked, termOf } from './match';

/** What a reader may go to. */
export type Hit = { kind: 'person'; person: Person } | { kind: 'list'; token: string; person: Person };

let entries: Entry[] = [];

/** Reads the most followed accounts. Until then suggest finds none. */
export const ready = once(async () => {
  entries = entriesOf((await top()).people);
  return entries;
}, true);

/** The accounts among the most followed that a text finds, best first. */
export const suggest = (typed: string, limit: number): Person[] => find(entries, termOf(typed), limit);

async function person(user: string): Promise<Hit | null> {
  const found = await site.find(user);
  if (!found) {
    return null;
  }
  const known = entries.find((entry) => entry.person.address === found.address)?.person;
  const name = isAddress(user) ? '' : user;
  return { kind: 'person', person: known ?? { address: found.address, name, avatar: '', list: found.token } };
}

async function list(token: string): Promise<Hit | null> {
  try {
    const { address, ens } = await site.list(token).details();
    return { kind: 'list', token, person: { address, name: ens.name ?? '', avatar: ens.avatar ?? '' } };
  } catch (error) {
    if ((error as { status?: unknown }).status === 404) {
      return null;
    }
    throw error;
  }
}

/** The accounts and the list whose whole name, address or number a text is. */
export async function exact(typed: string): Promise<Hit[]> {
  const term = termOf(typed);
  if (!term) {
    return [];
  }
  const asked = [person(term)];
  if (!term.includes('.') && !isAddress(term)) {
    asked.push(person(term + '.eth'));
  }
  if (/^(0|[1-9]\d{0,77})$/.test(term)) {
    asked.push(list(term));
  }
  const hits = (await Promise.all(asked)).filter((hit) => hit !== null);
  const first = (hit: Hit) => hits.findIndex((other) => other.kind === hit.kind && other.person.address === hit.person.address);
  return hits.filter((hit, i) => !hit.person.address || first(hit) === i);
}

/** Accounts of all that have a rank: of a site with the whole API only. */
export async function everywhere(typed: string, limit: number): Promise<Person[]> {
  const { results } = await site.search(typed.trim(), { limit });
  return results.map(({ address, name, avatar, followers }) => ({
    address,
    name: name ?? '',
    avatar: avatar ?? '',
    followers: Number(followers),
  }));
}
