// What happened: reading it by pages, undoing it, days and growth, run in node by TestUnits. Throws for a promise that is
// not kept.

import { asItWas, byDay, dateOf, dayOf, durationOf, Log, mixed, nextDay, recentOf, steps, sumsOf, timeOf, undo, type Entry, type Growth, type Shard } from '../src/data/ops';
import { ageOf } from '../src/texts/later';

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

// The same numbers in every run.
let seed = 20261101;
function below(n: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >> 8) % n;
}

const address = (n: number): string => '0x' + String(n).padStart(40, '0');
const who = (n: number) => ({ address: address(n), name: '', avatar: '' });

/* As of a day: undoing what happened gives what was, at every moment of random histories. */

for (let round = 0; round < 200; round++) {
  const accounts = 1 + below(8);
  const held = new Set<number>(Array.from({ length: below(accounts + 1) }, (_, i) => i));
  const entries: Entry[] = []; // the oldest first
  const was: [time: number, held: number[]][] = [[0, [...held]]]; // after what was at that time
  let time = 1000;
  for (let i = 0; i < 1 + below(40); i++) {
    time += below(3) * 1000; // several at once too
    const n = below(accounts);
    const action = held.has(n) ? (['unfollow', 'tag', 'untag'] as const)[below(3)] ?? 'tag' : 'follow';
    entries.push({ time, action, tag: action.endsWith('tag') ? 'x' : '', person: who(n) });
    if (action === 'follow') {
      held.add(n);
    } else if (action === 'unfollow') {
      held.delete(n);
    }
    was.push([time, [...held]]);
  }
  const newest = [...entries].reverse();
  const now = [...held].map(who);
  const sorted = (all: string[]) => all.sort();
  for (const before of was.flatMap(([at]) => [at, at + 1])) {
    const at = was.filter(([from]) => from < before).pop()?.[1] ?? was[0]?.[1] ?? [];
    const changes = undo(newest, before);
    const all = asItWas(now, changes);
    same(`round ${round}, before ${before}`, sorted((all ?? []).map(({ person }) => person.address)), sorted(at.map(address)));
    same('who came', sorted(changes.came.map(({ person }) => person.address)), sorted([...held].filter((n) => !at.includes(n)).map(address)));
    same('who left', sorted(changes.left.map(({ person }) => person.address)), sorted(at.filter((n) => !held.has(n)).map(address)));
    for (const { person, came, left } of [...changes.came, ...changes.left]) {
      const last = newest.find((one) => one.person.address === person.address && (one.action === 'follow' || one.action === 'unfollow'));
      same(`when ${person.address} moved`, came ?? left, last?.time);
    }
    // Lists that do not go with the entries are noticed, if anything came or left.
    if (changes.came[0]) {
      same('without one who came', asItWas(now.filter((one) => one.address !== changes.came[0]?.person.address), changes), null);
    }
    if (changes.left[0]) {
      same('with one who left', asItWas([...now, changes.left[0].person], changes), null);
    }
  }
}

/* Pages */

type Row = Shard['entries'][number];
const byRow = (time: number, n: number, opcode = 1, tag = ''): Row => [time, address(n), 'n' + n, '', opcode, tag];

function host(rows: Row[], size: number, total = rows.length) {
  const asked: number[] = [];
  const read = async (n: number): Promise<Shard | null> => {
    asked.push(n);
    const entries = rows.slice(n * size, (n + 1) * size);
    return entries.length || n === 0 ? { total, entries } : null;
  };
  return { asked, read };
}

async function fails(what: string, work: () => Promise<unknown>): Promise<void> {
  const error = await work().then(() => undefined, (caught: unknown) => caught);
  if (error !== mixed) {
    throw new Error(`${what}: got ${String(error)}, want that objects are of two sites`);
  }
}

const rows = Array.from({ length: 25 }, (_, i) => byRow(100_000 - i * 100, i, 1 + (i % 5), 't' + i)); // opcode 5 is none
{
  const { asked, read } = host(rows, 10);
  const log = new Log('by', read);
  await log.until(1);
  same('the first object', [asked, log.total, log.entries.length, log.ended], [[0], 25, 8, false]);
  await Promise.all([log.until(2), log.until(2)]);
  same('two readers at once', [asked, log.entries.length], [[0, 1], 16]);
  await log.until(9);
  same('all', [asked, log.entries.length, log.ended], [[0, 1, 2], 20, true]);
  await log.until(99);
  same('after the end', asked, [0, 1, 2]);
  same('an entry', log.entries[2], { time: 99_800, action: 'tag', tag: 't2', person: { address: address(2), name: 'n2', avatar: '' } });
}
{
  const { asked, read } = host(rows, 10);
  const log = new Log('by', read);
  await log.until(10, () => log.oldest < 98_950);
  same('until it is enough', asked, [0, 1]);
}
{
  const log = new Log('to', async () => ({ total: 1, entries: [[5, '7', address(1), 'a.eth', 'https://a.example/a.png', 4, 'b']] }));
  await log.until(1);
  same('what was done to it', log.entries, [{ time: 5, action: 'untag', tag: 'b', person: { address: address(1), name: 'a.eth', avatar: 'https://a.example/a.png' } }]);
}
{
  const log = new Log('to', async () => null);
  await log.until(10);
  same('no object', [log.total, log.entries, log.ended], [0, [], true]);
}
await fails('a part that is gone', () => new Log('by', host(rows.slice(0, 10), 10, 25).read).until(9));
await fails('a part with another total', () => new Log('by', async (n) => ({ total: 25 + n, entries: rows.slice(n * 10, n * 10 + 10) })).until(9));
await fails('a part that does not go on', () => new Log('by', async () => ({ total: 20, entries: rows.slice(0, 10) })).until(9));
await fails('more than there are', () => new Log('by', host(rows, 10, 15).read).until(9));
await fails('none of some', () => new Log('by', async () => ({ total: 25, entries: [] })).until(9));
{
  // What could not be read is read again.
  let broken = true;
  const { read, asked } = host(rows, 10);
  const log = new Log('by', async (n) => {
    if (broken && n === 1) {
      throw new Error('away');
    }
    return read(n);
  });
  same('away', await log.until(9).catch((error: Error) => error.message), 'away');
  broken = false;
  await log.until(9);
  same('back', [asked, log.entries.length], [[0, 1, 2], 20]);
}

same('recent', recentOf([[9, '7', address(1), 'a', '', address(2), 'b', '', 3, 'x'], [8, '7', address(1), 'a', '', address(2), 'b', '', 9, '']]), [
  { time: 9, action: 'tag', tag: 'x', person: { address: address(2), name: 'b', avatar: '' }, actor: { address: address(1), name: 'a', avatar: '' } },
]);

/* Days and times */

const noon = Date.UTC(2026, 9, 31, 12);
same('days', [dateOf(noon), dateOf(dayOf(noon)), dateOf(nextDay(noon)), dateOf(nextDay(dayOf(noon)) - 1)], ['2026-10-31', '2026-10-31', '2026-11-01', '2026-10-31']);
same('dates', ['2026-10-31', '2026-2-3', '', 'x', '2026-13-01', '2026-10-31T00:00'].map((text) => dateOf(timeOf(text))), ['2026-10-31', '', '', '', '', '']);
same('by day', byDay([noon + 1, noon, noon - 43_200_000, noon - 43_200_001].map((time) => ({ time, action: 'follow', tag: '', person: who(1) }))).map(({ day, entries }) => [dateOf(day), entries.length]), [['2026-10-31', 3], ['2026-10-30', 1]]);
same('durations', ['999h0m0s', '1h30m0s', '1.5s', '100ms', '', '0s', '-1h', 'x', '1', undefined, 5].map(durationOf), [3_596_400_000, 5_400_000, 1500, 100, 0, 0, 0, 0, 0, 0, 0]);
same('ages', [-5000, 0, 59_999, 60_000, 3_599_999, 3_600_000, 47 * 3_600_000, 48 * 3_600_000, 999 * 3_600_000, NaN].map(ageOf), [
  'just now', 'just now', 'just now', '1 minute ago', '59 minutes ago', '1 hour ago', '47 hours ago', '2 days ago', '41 days ago', 'just now',
]);

/* Growth: sums are those of a naive count by the calendar. */

for (let round = 0; round < 50; round++) {
  const first = timeOf('2024-09-25') + below(500) * 86_400_000;
  const days = Array.from({ length: below(800) }, (): [number, number] => [below(4), below(3)]);
  const growth: Growth = { first: dateOf(first), days };
  for (const step of steps) {
    const want = new Map<string, [number, number]>();
    days.forEach(([follows, unfollows], i) => {
      const date = new Date(first + i * 86_400_000);
      if (step === 'week') {
        date.setUTCDate(date.getUTCDate() - ((date.getUTCDay() + 6) % 7));
      } else if (step === 'month') {
        date.setUTCDate(1);
      }
      const key = date.toISOString().slice(0, 10);
      const [a, b] = want.get(key) ?? [0, 0];
      want.set(key, [a + follows, b + unfollows]);
    });
    const [starts, follows, unfollows] = sumsOf(growth, step);
    same(`growth by ${step}`, starts.map((start, i) => [dateOf(start), [follows[i], unfollows[i]]]), [...want]);
  }
}
