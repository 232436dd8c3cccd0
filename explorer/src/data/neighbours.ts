// An account, those it follows, and who of them follows whom.

import { Follow, isFollow, stateOf } from './rules';
import { isWhole, site, top, type Person } from './site';

/** An account with those that it follows. */
export interface Neighbourhood {
  /** The account first, then those it follows, the most followed first. */
  people: readonly Person[];
  /** How many more it follows. */
  left: number;
}

/** Nobody sees anything in pictures of more. */
export const most = 300;
/** Of so many it is found out who has the most followers. */
const considered = 20_000;
/** Lists that are read at the same time. */
const atOnce = 8;

/** Reads whom an account follows; null if nobody has the name. */
export async function neighbourhood(user: string): Promise<Neighbourhood | null> {
  const [whole, found, { people }] = await Promise.all([isWhole(), site.find(user), top()]);
  if (!found) {
    return null;
  }
  const known = new Map(people.map((person) => [person.address, person]));
  const { address, token } = found;
  const centre = await named(address, token, known, whole);
  if (!token) {
    return { people: [centre], left: 0 };
  }
  const { rows } = await site.list(token).rows('following', whole ? { sort: 'followers', limit: Infinity } : { limit: considered });
  const follows = rows
    .filter((row) => stateOf(row.tags) === Follow && row.address !== address)
    .map((row): Person => ({ address: row.address, name: row.name, avatar: row.avatar, followers: row.followers ?? known.get(row.address)?.followers ?? 0 }));
  follows.sort((a, b) => (b.followers ?? 0) - (a.followers ?? 0) || (a.address < b.address ? -1 : 1));
  const shown = follows.slice(0, most - 1);
  return { people: [centre, ...shown], left: follows.length - shown.length };
}

async function named(address: string, token: string, known: ReadonlyMap<string, Person>, whole: boolean): Promise<Person> {
  const person = known.get(address);
  if (person?.name) {
    return person;
  }
  const followers = person?.followers ?? 0;
  if (!whole && !token) {
    return { address, name: '', avatar: '', followers };
  }
  const { ens } = await (whole ? site.user(address) : site.list(token)).details();
  return { address, name: ens.name, avatar: ens.avatar, followers: whole ? (await site.user(address).stats()).followers_count : followers };
}

/**
 * Reads whom people follow among each other: each is called with the index of one of them, and with those of
 * whom it follows. The first one's are known. Lists that cannot be read are counted.
 */
export async function followed(people: readonly Person[], each: (index: number, targets: number[]) => void, signal: AbortSignal): Promise<number> {
  const indexes = new Map(people.map(({ address }, i) => [address, i]));
  const lists = new Map((await top()).people.map(({ address, list }) => [address, list]));
  let next = 1;
  let failed = 0;
  const work = async () => {
    while (next < people.length && !signal.aborted) {
      const index = next++;
      try {
        const targets = await targetsOf(people[index]?.address ?? '', lists, indexes);
        if (!signal.aborted) {
          each(index, targets.filter((target) => target !== index));
        }
      } catch {
        failed++;
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return failed;
}

async function targetsOf(address: string, lists: ReadonlyMap<string, string | undefined>, indexes: ReadonlyMap<string, number>): Promise<number[]> {
  const list = lists.get(address) ?? (await site.find(address))?.token;
  if (!list) {
    return [];
  }
  const { records } = await site.list(list).records();
  return records.flatMap((record) => {
    const index = isFollow(record.version, record.record_type, record.tags) ? indexes.get(record.data) : undefined;
    return index === undefined ? [] : [index];
  });
}
