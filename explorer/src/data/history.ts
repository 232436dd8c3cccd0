// What happened lately: activity of accounts and of all, an account as of a day, and growth.

import { asItWas, durationOf, Log, mixed, recentOf, undo, type Changes, type Done, type Entry, type Growth, type Held, type Shard, type Side } from './ops';
import { relation, type Kind, type Profile } from './people';
import { object, once, optional, site } from './site';

/** The time that the site says something about. */
export interface Period {
  from: number;
  to: number;
}

/** The period of the site's history; null for a site without. */
export async function period(): Promise<Period | null> {
  const { config, as_of } = await site.root();
  const to = Date.parse(as_of);
  const length = durationOf(config['history_window']);
  return length > 0 ? { from: to - length, to } : null;
}

/** Who did what last, in the whole site. */
export const recent = async (): Promise<{ done: Done[]; to: number }> => {
  const [{ entries }, { as_of }] = await Promise.all([object<{ entries: Parameters<typeof recentOf>[0] }>('recent'), site.root()]);
  return { done: recentOf(entries), to: Date.parse(as_of) };
};

/** Growth over all time; null for a site without. */
export const growth = once(async (): Promise<Growth | null> => ((await period()) ? optional<Growth>('growth') : null), true);

/* The activity of an account */

/** Does work again that has seen objects of two sites. */
async function settled<T>(work: (isAgain: boolean) => Promise<T>): Promise<T> {
  for (let pause = 100; ; pause *= 4) {
    try {
      return await work(pause > 100);
    } catch (error) {
      if (error !== mixed || pause > 1600) {
        throw error;
      }
      await new Promise((done) => setTimeout(done, pause));
    }
  }
}

/** What an account did, or what was done to it, from its objects. */
export function openLog(side: Side, { address, list }: Pick<Profile, 'address' | 'list'>, isAgain: boolean): Log {
  const name = side === 'by' ? 'activity' : 'notifications';
  const of = encodeURIComponent(side === 'by' ? list : address);
  return new Log(side, async (shard) => {
    if (!of) {
      return null;
    }
    const key = shard ? `${name}/older/${of}/${shard}` : `${name}/${of}`;
    return optional<Shard>(`../_search/${key}`, isAgain ? { cache: 'reload' } : {});
  });
}

// The last one that was opened: whoever reads on goes on with it.
let last: { key: string; log: () => Promise<Log> } | undefined;

function opened(side: Side, person: Profile, isAgain: boolean): Promise<Log> {
  const key = [side, person.address, person.list].join(' ');
  if (isAgain || last?.key !== key) {
    last = { key, log: once(async () => openLog(side, person, isAgain), true) };
  }
  return last.log();
}

/** What happened to an account, or by it. */
export interface Activity {
  /** The newest first. */
  entries: readonly Entry[];
  /** How many there are in all. */
  total: number;
  ended: boolean;
}

/** Reads activity, from at most so many objects. */
export const activity = (side: Side, person: Profile, shards: number): Promise<Activity> =>
  settled(async (isAgain) => {
    const { entries, total, ended } = await (await opened(side, person, isAgain)).until(shards);
    return { entries: [...entries], total, ended };
  });

/* As of a day */

/** As many objects are read at most: 10,000 entries. */
export const mostShards = 10;
/** Of so many accounts all are listed. */
export const mostListed = 10_000;

/** Whom an account followed, or who followed it, before a time. */
export interface Then extends Changes {
  /** What is shown is before this time: a later one if too much has happened since the one that was asked for. */
  before: number;
  /** How many entries were undone. */
  undone: number;
  now: number;
  then: number;
  /** Everybody; undefined if they are too many, null if lists and entries do not go together. */
  all: readonly Held[] | undefined | null;
}

/** An account as it was before a time, which is the beginning of a day. */
export const asOf = (kind: Kind, person: Profile, before: number, next: (time: number) => number): Promise<Then> =>
  settled(async (isAgain) => {
    const side = kind === 'following' ? 'by' : 'to';
    const [log, { total: now, page }] = await Promise.all([
      openLog(side, person, isAgain).until(1),
      relation(person, kind, { sort: 'latest', tags: [], term: '' }),
    ]);
    await log.until(mostShards, () => log.oldest < before);
    const reached = log.ended || log.oldest < before ? before : Math.max(before, next(log.oldest));
    const changes = undo(log.entries, reached);
    const all = now <= mostListed ? asItWas(await page(0, now), changes) : undefined;
    const undone = log.entries.filter(({ time }) => time >= reached).length;
    return { ...changes, before: reached, undone, now, then: now - changes.came.length + changes.left.length, all };
  });
