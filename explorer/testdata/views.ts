// Pages of rows, distributions and graphs, run in node by TestUnits. Throws for a promise that is not kept.

import { median, ranges, sums } from '../src/data/degrees';
import type { Person } from '../src/data/site';
import { communities, type Weighted } from '../src/graph/communities';
import { isSettled, layout, place } from '../src/graph/layout';
import { Graph } from '../src/graph/model';
import { Pages } from '../src/ui/pages';

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

const arrived = () => new Promise((done) => setTimeout(done));

// Rows of an unknown number end where a page is short, and a page that failed can be had again.
const all = Array.from({ length: 25 }, (_, i) => i);
const asked: number[] = [];
let broken = true;
const pages = new Pages<number>(
  10,
  undefined,
  undefined,
  async (offset, limit) => {
    asked.push(offset);
    if (broken && offset === 10) {
      throw new Error('broken');
    }
    return all.slice(offset, offset + limit);
  },
  () => undefined,
);
pages.want(0, 10);
pages.want(0, 10);
await arrived();
same('after a full page', [pages.total, pages.known], [20, undefined]);
pages.want(5, 20);
await arrived();
same('after a failure', pages.pages.get(1)?.state, 'failed');
pages.want(0, 20);
same('pages asked for', asked, [0, 10]);
broken = false;
await pages.load(1);
same('after it was asked for again', [pages.total, pages.known], [30, undefined]);
pages.want(20, 30);
await arrived();
same('at the end', [pages.total, pages.known], [25, 25]);
pages.want(0, 25);
same('pages asked for in all', asked, [0, 10, 10, 20]);

const known = new Pages<number>(10, 12, undefined, async (offset, limit) => all.slice(offset, offset + limit), () => undefined);
known.want(0, 1000);
await arrived();
same('rows of a known number', [known.known, [...known.pages.keys()], known.pages.get(1)], [12, [0, 1], { state: 'done', rows: [10, 11] }]);

// Distributions
const degrees: [number, number][] = [[1, 5], [2, 3], [3, 1], [8, 2], [9, 1]];
same('sums', sums(degrees), [[1, 2, 3, 8, 9], [5, 3, 1, 2, 1], [12, 7, 4, 3, 1]]);
same('median', median(degrees, 12), 2);
same('ranges', ranges(degrees), [[1, 1, 5], [2, 2, 3], [3, 4, 1], [5, 8, 2], [9, 16, 1]]);

// Two groups that are whole within, with one edge between them
const groups: Weighted[] = [];
for (let a = 0; a < 12; a++) {
  for (let b = a + 1; b < 12; b++) {
    if (a < 6 === b < 6 || (a === 0 && b === 11)) {
      groups.push([a, b, 1]);
    }
  }
}
same('communities', communities(13, groups), [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2]);

// The same follows make the same picture, in whatever order they arrive.
const people = Array.from({ length: 60 }, (_, i): Person => ({ address: '0x' + String(i).padStart(40, '0'), name: '', avatar: '', followers: 60 - i }));
const targets = people.map((_, i) => people.flatMap((_other, j) => ((i * 7 + j * 13) % 11 < 2 && i !== j && j ? [j] : [])));
function picture(order: readonly number[]): string {
  const graph = new Graph(people);
  for (const i of order) {
    graph.follow(i, targets[i] ?? []);
  }
  graph.finish();
  place(graph, new Map());
  const forces = layout(graph);
  let ticks = 0;
  while (!isSettled(forces)) {
    forces.tick();
    if (++ticks > 1000) {
      throw new Error('the nodes do not find their places');
    }
  }
  return JSON.stringify(graph.nodes.map(({ x, y, community }) => [x, y, community]));
}
const order = people.map((_, i) => i).slice(1);
same('picture', picture([...order].reverse()), picture(order));

// Who was in the picture before stays there, and the others are around the centre.
const graph = new Graph(people);
place(graph, new Map([[people[0]?.address ?? '', [500, 300]], [people[5]?.address ?? '', [1, 2]]]));
same('places', [graph.nodes[0], graph.nodes[5]].map((node) => [node?.x, node?.y]), [[500, 300], [1, 2]]);
if (Math.hypot((graph.nodes[1]?.x ?? 0) - 500, (graph.nodes[1]?.y ?? 0) - 300) > 100) {
  throw new Error('the most followed account is not next to the centre');
}
