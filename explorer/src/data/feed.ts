// What those whom the reader follows did lately: from the lists that did something last, and from what each of these did.

import { openLog, period } from './history';
import type { Done } from './ops';
import { followed } from './relations';
import { optional, type Person } from './site';

/** Lists that are read at once, each in one object, and how often without being asked again. */
const step = 12;
const mostSteps = 2;
/** Entries that are shown at first, and how many more on request. */
export const few = 10;
export const pageLength = 50;

type Active = [time: number, token: string, address: string];

/** The feed of a reader, as far as it was read. */
export class Feed {
  private readonly read: Done[] = [];
  private unread: Active[] = [];
  /** What is not newer than this may not be all there is. */
  private from = -Infinity;

  private constructor(
    /** Everybody whom the reader follows, and whether that is all of them. */
    readonly people: ReadonlyMap<string, Person>,
    readonly isAll: boolean,
    /** The site says what happened since then, and until then. */
    readonly period: { from: number; to: number },
  ) {}

  /** Reads the first entries; null if nobody is the reader, or the site does not say what happened. */
  static async open(): Promise<Feed | null> {
    const [of, time] = await Promise.all([followed(), period()]);
    if (!of || !time) {
      return null;
    }
    const feed = new Feed(of.people, of.isAll, time);
    const active = of.people.size ? ((await optional<{ entries: Active[] }>('active'))?.entries ?? []) : [];
    feed.unread = active.filter(([, , address]) => of.people.has(address));
    await feed.reach(few);
    return feed;
  }

  /** What is surely next to each other: the newest first. */
  get entries(): readonly Done[] {
    const end = Math.max(this.from, this.unread[0]?.[0] ?? -Infinity);
    return this.read.filter(({ time }) => time > end);
  }

  /** Whether there are lists that were not read. */
  get hasMore(): boolean {
    return this.unread.length > 0;
  }

  /** Reads on until this many entries are known, within the limit of requests. */
  async reach(wanted: number): Promise<void> {
    for (let i = 0; i < mostSteps && this.hasMore && this.entries.length < wanted; i++) {
      await this.readNext();
    }
  }

  /** Reads the lists that did something next. */
  private async readNext(): Promise<void> {
    const next = this.unread.slice(0, step);
    const logs = await Promise.all(next.map(([, list, address]) => openLog('by', { list, address }, false).until(1)));
    this.unread = this.unread.slice(next.length);
    logs.forEach((log, i) => {
      const actor = this.people.get(next[i]?.[2] ?? '');
      this.from = log.ended ? this.from : Math.max(this.from, log.oldest);
      this.read.push(...(actor ? log.entries.map((entry) => ({ ...entry, actor })) : []));
    });
    this.read.sort((a, b) => b.time - a.time);
  }
}
