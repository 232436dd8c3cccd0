// What is new for readers, run in node by TestUnits. Throws for a promise that is not kept.

import { between, newsOf, visited, visitsOf, type Seen } from '../src/data/news';
import type { Action, Entry } from '../src/data/ops';

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

let seed = 20261101;
function below(n: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >> 8) % n;
}

const entry = (time: number, name: string, action: Action, tag = ''): Entry => ({ time, action, tag, person: { address: name, name, avatar: '' } });

// Lists that are written at random, with all that they were on the way. What was blocked before all entries, nobody can know.
interface List {
  held: boolean;
  tags: Set<string>;
}
const follows = ({ held, tags }: List) => held && !tags.has('block') && !tags.has('mute');
const against = ({ held, tags }: List) => held && (tags.has('block') || tags.has('mute'));
const copy = ({ held, tags }: List): List => ({ held, tags: new Set(tags) });

for (let round = 0; round < 2000; round++) {
  const names = ['a', 'b', 'c'].slice(0, 1 + below(3));
  const lists = new Map<string, List>(names.map((name) => [name, { held: below(2) > 0, tags: new Set() }]));
  const total = below(14);
  const since = below(total + 1);
  const then = new Map<string, List>();
  const all: Entry[] = [];
  const touched: string[] = [];
  for (let time = 0; time <= total; time++) {
    if (time === since) {
      lists.forEach((list, name) => then.set(name, copy(list)));
    }
    const name = names[below(names.length)] ?? '';
    const list = lists.get(name);
    const tag = ['block', 'mute', 'top8'][below(3)] ?? '';
    if (time === total || !list) {
      break;
    }
    let action: Action;
    if (!list.held) {
      action = 'follow';
      list.held = true;
      list.tags.clear();
    } else if (below(4) === 0) {
      action = 'unfollow';
      list.held = false;
    } else if (list.tags.delete(tag)) {
      action = 'untag';
    } else {
      action = 'tag';
      list.tags.add(tag);
    }
    all.unshift(entry(time, name, action, action === 'tag' || action === 'untag' ? tag : ''));
    if (time >= since) {
      touched.push(name);
    }
  }
  const news = newsOf(all, since);
  for (const name of names) {
    const [a, b] = [then.get(name), lists.get(name)];
    if (!a || !b) {
      throw new Error('no list');
    }
    const want = !touched.includes(name) ? 'none' : against(b) && !against(a) ? 'against' : follows(b) && !follows(a) ? 'gained' : follows(a) && !follows(b) ? 'lost' : 'others';
    const got = (['gained', 'lost', 'against', 'others'] as const).filter((group) => news[group].some(({ address }) => address === name)).join() || 'none';
    same(`news of ${JSON.stringify(all)} since ${since}: ${name}`, got, want);
  }
}
same('order', newsOf([entry(5, 'c', 'follow'), entry(4, 'a', 'follow'), entry(3, 'b', 'follow'), entry(2, 'c', 'unfollow'), entry(1, 'd', 'follow')], 2).gained.map(({ name }) => name), ['a', 'b']);

/* Visits */

const seen = (asOf: number, followers: number): Seen => ({ asOf, followers });
const hour = 3_600_000;
const first = visited(undefined, seen(1, 5), 0);
same('the first visit', first, { now: seen(1, 5), at: 0 });
same('soon again', visited(first, seen(2, 6), hour / 4).before, undefined);
const second = visited(first, seen(2, 6), hour);
same('the second visit', second, { before: seen(1, 5), now: seen(2, 6), at: hour });
same('the same state again', visited(second, seen(2, 6), 9 * hour).before, seen(1, 5));
same('a newer one at once', visited(second, seen(3, 7), hour + 1), { before: seen(1, 5), now: seen(3, 7), at: hour + 1 });
same('an older one', visited(second, seen(1, 5), 9 * hour).before, seen(1, 5));

for (const kept of [undefined, null, 7, 'x', [], {}, { now: 1, at: 1 }, { now: { asOf: '1' }, at: 1 }, { now: seen(1, 1) }]) {
  same(`visits of ${JSON.stringify(kept)}`, visitsOf(kept), undefined);
}
same('kept visits', visitsOf(JSON.parse(JSON.stringify(second))), second);
same('what others have put there', visitsOf({ now: { asOf: 1, followers: '<b>', following: -1, ids: ['0x1'] }, before: 5, at: 1 }), { now: { asOf: 1 }, at: 1 });

const [x, y, z] = ['1', '2', '3'].map((digit) => '0x' + digit.repeat(40)) as [string, string, string];
same('who came and went', between({ asOf: 1, ids: [x, y] }, { asOf: 2, ids: [y, z] }), { came: [z], gone: [x] });
same('too many', between({ asOf: 1 }, { asOf: 2, ids: [y] }), undefined);
