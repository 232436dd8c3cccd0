// What happened, as the site's objects have it: reading it by pages, undoing it, and counting it. Nothing here needs a
// browser.

import type { Person } from './site';

/** The actions of operations, by opcode from 1. */
export const actions = ['follow', 'unfollow', 'tag', 'untag'] as const;
export type Action = (typeof actions)[number];

/** An operation with an effect that readers see. */
export interface Entry {
  /** When its block was, in milliseconds. */
  time: number;
  action: Action;
  /** '' for follows and unfollows. */
  tag: string;
  /** Who did it, or whom it is about: the account that is not the subject. */
  person: Person;
}

/** What an account did by its primary list, or what lists did to it. */
export type Side = 'by' | 'to';

type By = [time: number, address: string, name: string, avatar: string, opcode: number, tag: string];
type To = [time: number, token: string, ...rest: [address: string, name: string, avatar: string, opcode: number, tag: string]];
type Recent = [time: number, token: string, ...actor: [string, string, string], ...about: [string, string, string], opcode: number, tag: string];

/** An object of entries, the newest first. What is too much for the first one is in further ones. */
export interface Shard {
  /** How many entries there are in all objects. */
  total: number;
  entries: (By | To)[];
}

const person = (address: string, name: string, avatar: string): Person => ({ address, name, avatar });

/** Opcodes that nobody knows here are left out. */
function entry(time: number, who: Person, opcode: number, tag: string): Entry[] {
  const action = actions[opcode - 1];
  return action ? [{ time, action, tag, person: who }] : [];
}

function entriesOf(side: Side, rows: Shard['entries']): Entry[] {
  return rows.flatMap((row) => {
    const [address, name, avatar, opcode, tag] = (side === 'by' ? row.slice(1) : row.slice(2)) as [string, string, string, number, string];
    return entry(row[0], person(address, name, avatar), opcode, tag);
  });
}

/** What an account did to another one. */
export interface Done extends Entry {
  actor: Person;
}

export const recentOf = (rows: readonly Recent[]): Done[] =>
  rows.flatMap(([time, , ...row]) => {
    const [a, aName, aAvatar, b, bName, bAvatar, opcode, tag] = row;
    return entry(time, person(b, bName, bAvatar), opcode, tag).map((one) => ({ ...one, actor: person(a, aName, aAvatar) }));
  });

/** Objects that do not go together are of two sites, one of which is being published. */
export const mixed = new Error('the objects are of two sites: try again in a minute');

/** What happened, read object by object from the newest on. */
export class Log {
  readonly entries: Entry[] = [];
  /** How many entries there are in all. */
  total = 0;
  /** Objects that were read. */
  shards = 0;
  private count = 0; // entries that were read, also those that are left out
  private reading: Promise<void> | undefined;

  /** read reads an object: 0 is the newest one. It returns null for one that is not there. */
  constructor(
    private readonly side: Side,
    private readonly read: (shard: number) => Promise<Shard | null>,
  ) {}

  get ended(): boolean {
    return this.shards > 0 && this.count >= this.total;
  }

  /** The time of the oldest entry that was read. */
  get oldest(): number {
    return this.entries[this.entries.length - 1]?.time ?? Infinity;
  }

  private async next(): Promise<void> {
    const shard = await this.read(this.shards);
    if (this.shards === 0) {
      this.total = shard?.total ?? 0; // no object, no news
    } else if (!shard?.entries.length || shard.total !== this.total || (shard.entries[0]?.[0] ?? 0) > this.oldest) {
      throw mixed;
    }
    this.shards++;
    this.count += shard?.entries.length ?? 0;
    this.entries.push(...entriesOf(this.side, shard?.entries ?? []));
    if (this.count > this.total || (this.count < this.total && !shard?.entries.length)) {
      throw mixed;
    }
  }

  /** Reads on while more are wanted and there are some, with at most so many objects read in all. */
  async until(most: number, isEnough: () => boolean = () => false): Promise<this> {
    while (this.shards === 0 || (this.shards < most && !this.ended && !isEnough())) {
      await (this.reading ??= this.next().finally(() => (this.reading = undefined)));
    }
    return this;
  }
}

/* As of a day */

const day = 86_400_000;

/** The beginning of the day of a time, in UTC. */
export const dayOf = (time: number): number => Math.floor(time / day) * day;
export const nextDay = (time: number): number => dayOf(time) + day;
/** A day as its date: '2026-10-31'; '' for what is none. */
export const dateOf = (time: number): string => (Math.abs(time) < 8.64e15 ? new Date(time).toISOString().slice(0, 10) : '');
/** The beginning of the day with a date; NaN for what is none. */
export const timeOf = (date: string): number => (/^\d{4}-\d\d-\d\d$/.test(date) ? Date.parse(`${date}T00:00:00.000Z`) : NaN);

/** An account that is there now, or was then. */
export interface Held {
  person: Person;
  /** When it came, if it has come since; when it left, if it has left since. */
  came?: number;
  left?: number;
}

/** What is different since a time. */
export interface Changes {
  /** Accounts that are there, and were not: the newest first. */
  came: Held[];
  left: Held[];
}

/**
 * Undoes entries, the newest first, that are not before a time. An account was there then if the first thing that was
 * done to it since was anything but to add it, as only accounts that are there can be removed or get tags.
 */
export function undo(entries: readonly Entry[], since: number): Changes {
  const ends = new Map<string, { newest: Entry; oldest: Entry; moved: number }>();
  for (const one of entries) {
    if (one.time < since) {
      break;
    }
    const known = ends.get(one.person.address) ?? { newest: one, oldest: one, moved: 0 };
    const isMove = one.action === 'follow' || one.action === 'unfollow';
    ends.set(one.person.address, { ...known, oldest: one, moved: known.moved || (isMove ? one.time : 0) });
  }
  const changes: Changes = { came: [], left: [] };
  for (const { newest, oldest, moved } of ends.values()) {
    const [now, then] = [newest.action !== 'unfollow', oldest.action !== 'follow'];
    if (now && !then) {
      changes.came.push({ person: newest.person, came: moved });
    } else if (then && !now) {
      changes.left.push({ person: newest.person, left: moved });
    }
  }
  return changes;
}

/** Everybody who was there then, from those who are there now; null if the two do not go together. */
export function asItWas(now: readonly Person[], { came, left }: Changes): Held[] | null {
  const gone = new Set(came.map(({ person: { address } }) => address));
  const back = new Set(left.map(({ person: { address } }) => address));
  const stayed = now.filter(({ address }) => !gone.has(address));
  return now.length - stayed.length === gone.size && !stayed.some(({ address }) => back.has(address))
    ? [...left, ...stayed.map((one): Held => ({ person: one }))]
    : null;
}

/* Days */

/** Entries of a day, the newest first. */
export interface Day {
  day: number;
  entries: Entry[];
}

/** Groups entries, which are sorted by time, by their days. */
export function byDay(entries: readonly Entry[]): Day[] {
  const days: Day[] = [];
  for (const one of entries) {
    const last = days[days.length - 1];
    if (last?.day === dayOf(one.time)) {
      last.entries.push(one);
    } else {
      days.push({ day: dayOf(one.time), entries: [one] });
    }
  }
  return days;
}

/* The period that a site says something about */

const units: Record<string, number> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1, us: 1e-3, 'µs': 1e-3, ns: 1e-6 };

/** The milliseconds of a duration as Go writes it, '999h0m0s'; 0 for what is none. */
export function durationOf(text: unknown): number {
  if (typeof text !== 'string' || !/^(\d+(\.\d+)?(h|ms|us|µs|ns|m|s))+$/.test(text)) {
    return 0;
  }
  return [...text.matchAll(/([\d.]+)(\D+)/g)].reduce((sum, [, count, unit = '']) => sum + Number(count) * (units[unit] ?? 0), 0);
}

/* Growth */

/** Follows and unfollows of each day, from the first on. */
export interface Growth {
  first: string;
  days: [follows: number, unfollows: number][];
}

export const steps = ['day', 'week', 'month'] as const;
export type Step = (typeof steps)[number];

/** The beginning of the week, which begins on Monday, or of the month of a day. */
const beginning: Record<Step, (time: number) => number> = {
  day: (time) => time,
  week: (time) => time - ((Math.floor(time / day) + 3) % 7) * day, // 1970 began on a Thursday
  month: (time) => timeOf(dateOf(time).slice(0, 7) + '-01'),
};

/** Growth by steps: when each begins, and how many follows and unfollows are in it. */
export function sumsOf({ first, days }: Growth, step: Step): [starts: number[], follows: number[], unfollows: number[]] {
  const sums: [number[], number[], number[]] = [[], [], []];
  const [starts, follows, unfollows] = sums;
  days.forEach(([followed, unfollowed], i) => {
    const start = beginning[step](timeOf(first) + i * day);
    if (starts[starts.length - 1] !== start) {
      starts.push(start);
      follows.push(0);
      unfollows.push(0);
    }
    const last = starts.length - 1;
    follows[last] = (follows[last] ?? 0) + followed;
    unfollows[last] = (unfollows[last] ?? 0) + unfollowed;
  });
  return sums;
}
