// What is new for the reader since the last visit: from history, or from what was seen then.

import { activity } from './history';
import { keep, load, mine, rename } from './mine';
import { between, newsOf, visited, visitsOf, type News, type Seen } from './news';
import { profile, relation, type Profile } from './people';
import { site, top, type Person } from './site';

/** What is new. */
export interface Fresh {
  /** Since when, by the time of the site; undefined at the first visit of a site without history. */
  since: number | undefined;
  /** Whether the reader was here before. */
  isFirst: boolean;
  news: News;
  /** Whether there may be more. */
  more: boolean;
  /** What was counted then and now, where it differs and nobody knows who it was. */
  counted: ['followers' | 'following', then: number, now: number][];
  /** Whether the site says what happened. */
  history: boolean;
}

const mostShards = 2; // of 1,000 entries
const mostIds = 1000; // followers that are told apart without history
const week = 7 * 86_400_000;

/** Followers by their addresses, if they are few. */
async function followers({ address }: Profile): Promise<Map<string, Person> | undefined> {
  const { total, page } = await relation({ address, list: '' }, 'followers', { sort: 'latest', tags: [], term: '' });
  const rows = total <= mostIds ? await page(0, total) : [];
  return total <= mostIds ? new Map(rows.filter(({ follows }) => follows).map((row) => [row.address, row])) : undefined;
}

const none: News = { gained: [], lost: [], against: [], others: [] };

async function fromHistory(person: Profile, since: number): Promise<Pick<Fresh, 'news' | 'more'>> {
  for (let shards = 1; ; shards++) {
    const { entries, ended } = await activity('to', person, shards);
    const isEnough = ended || (entries[entries.length - 1]?.time ?? 0) < since;
    if (isEnough || shards === mostShards) {
      return { news: newsOf(entries, since), more: !isEnough };
    }
  }
}

/** Looks at what is new for an account, and keeps that the reader has been here. */
export async function fresh({ address }: Person): Promise<Fresh> {
  const [{ as_of }, person] = await Promise.all([site.root(), profile(address)]);
  const asOf = Date.parse(as_of);
  if (person) {
    rename(person);
  }
  const all = (load('visits') ?? {}) as Record<string, unknown>;
  const history = !!person?.history;
  const ids = person?.whole && !history ? await followers(person) : undefined;
  const now: Seen = {
    asOf,
    ...(person?.followers !== undefined && { followers: person.followers }),
    ...(person?.following !== undefined && { following: person.following }),
    ...(ids && { ids: [...ids.keys()] }),
  };
  const visits = visited(visitsOf(Object.hasOwn(all, address) ? all[address] : undefined), now, Date.now());
  // Of accounts that the reader has forgotten nothing is kept.
  const kept = mine().accounts.map((one): [string, unknown] => [one.address, one.address === address ? visits : all[one.address]]);
  keep('visits', Object.fromEntries(kept));

  const { before } = visits;
  const isFirst = !before;
  if (person && history) {
    const since = before?.asOf ?? asOf - week;
    return { since, isFirst, ...(await fromHistory(person, since)), counted: [], history };
  }
  if (!before) {
    return { since: undefined, isFirst, news: none, more: false, counted: [], history };
  }
  const changed = between(before, now);
  const counted = (['followers', 'following'] as const).flatMap((kind): Fresh['counted'] => {
    const [then, here] = [before[kind], now[kind]];
    return then === undefined || here === undefined || then === here || (kind === 'followers' && changed) ? [] : [[kind, then, here]];
  });
  const known = new Map((changed?.gone.length ? (await top()).people : []).map((one) => [one.address, one]));
  const named = (id: string): Person => ids?.get(id) ?? known.get(id) ?? { address: id, name: '', avatar: '' };
  const news = { ...none, gained: changed?.came.map(named) ?? [], lost: changed?.gone.map(named) ?? [] };
  return { since: before.asOf, isFirst, news, more: false, counted, history };
}
