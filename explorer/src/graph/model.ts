// A graph of accounts: who follows whom, which edges hold it together, and which accounts belong together.
// The same accounts and follows always make the same graph, in whatever order they arrive.

import type { SimulationNodeDatum } from 'd3-force';
import type { Person } from '../data/site';
import { communities, type Weighted } from './communities';

export interface Node extends SimulationNodeDatum {
  index: number;
  person: Person;
  /** In the layout's units, which are CSS pixels at scale 1. */
  radius: number;
  /** Index of its colour; -1 if it is with few or none. */
  community: number;
  x: number;
  y: number;
}

export interface Edge {
  /** Indexes of nodes, the smaller first. */
  a: number;
  b: number;
  /** Bits: 1 if a follows b, 2 if b follows a. */
  who: number;
  /** How similar the two are: whom they have in common. */
  weight: number;
  /** Whether the layout keeps the two together. */
  strong: boolean;
}

/** How many colours communities have. */
export const colourCount = 8;
/** A community of fewer has no colour. */
const smallest = 3;
/** So many edges of each node are strong at least. */
const strongest = 4;

export class Graph {
  readonly nodes: Node[];
  readonly edges: Edge[] = [];
  /** Edges that the layout does not use, without those of the first node; then those that it uses. */
  weak: readonly Edge[] = [];
  strong: readonly Edge[] = [];
  private readonly unfinished: Edge[] = [];
  private readonly byPair = new Map<number, Edge>();

  /** Makes a graph of accounts, of which the first follows all others. */
  constructor(people: readonly Person[]) {
    this.weak = this.unfinished;
    const largest = Math.log1p(Math.max(1, ...people.map(({ followers = 0 }) => followers)));
    this.nodes = people.map((person, index) => ({
      index,
      person,
      radius: index === 0 ? 16 : 4 + (9 * Math.log1p(person.followers ?? 0)) / largest,
      community: -1,
      x: 0,
      y: 0,
    }));
    this.follow(
      0,
      people.slice(1).map((_, i) => i + 1),
    );
  }

  /** Adds whom a node follows. */
  follow(from: number, targets: readonly number[]): void {
    for (const to of targets) {
      const [a, b] = from < to ? [from, to] : [to, from];
      const key = a * this.nodes.length + b;
      let edge = this.byPair.get(key);
      if (!edge) {
        edge = { a, b, who: 0, weight: 0, strong: false };
        this.byPair.set(key, edge);
        this.edges.push(edge);
        if (a !== 0) {
          this.unfinished.push(edge);
        }
      }
      edge.who |= from === a ? 1 : 2;
    }
  }

  /** Finds the strong edges and the communities, once all follows are there. */
  finish(): void {
    const among = this.edges.filter(({ a }) => a !== 0); // the first node is with all
    weigh(among, this.nodes.length);
    this.strong = strongOf(among, this.nodes.length);
    this.weak = among.filter(({ strong }) => !strong);
    colour(this.nodes, communities(this.nodes.length, this.strong.map(({ a, b, weight }): Weighted => [a, b, weight])));
  }

  /** The communities that have a colour, in its order: how many accounts each has, and the one with the most followers. */
  communities(): { colour: number; size: number; most: Node }[] {
    const found: { colour: number; size: number; most: Node }[] = [];
    for (const node of this.nodes) {
      const known = found[node.community];
      if (known) {
        known.size++;
        known.most = (node.person.followers ?? 0) > (known.most.person.followers ?? 0) ? node : known.most;
      } else if (node.community >= 0) {
        found[node.community] = { colour: node.community, size: 1, most: node };
      }
    }
    return found;
  }

  /** The edges of a node. */
  of(index: number): Edge[] {
    return this.edges.filter(({ a, b }) => a === index || b === index);
  }
}

/** Weighs edges by the part of their neighbours that both nodes have. Neighbours are sets of bits. */
function weigh(edges: readonly Edge[], count: number): void {
  const words = Math.ceil(count / 32);
  const sets = Array.from({ length: count }, () => new Uint32Array(words));
  const degrees = new Array<number>(count).fill(0);
  const put = (node: number, other: number) => {
    const set = sets[node] as Uint32Array;
    set[other >> 5] = (set[other >> 5] as number) | (1 << (other & 31));
    degrees[node] = (degrees[node] ?? 0) + 1;
  };
  for (const { a, b } of edges) {
    put(a, b);
    put(b, a);
  }
  for (const edge of edges) {
    const [x, y] = [sets[edge.a] as Uint32Array, sets[edge.b] as Uint32Array];
    let common = 0;
    for (let i = 0; i < words; i++) {
      common += ones((x[i] as number) & (y[i] as number));
    }
    edge.weight = (common + (edge.who === 3 ? 2 : 1)) / Math.sqrt((degrees[edge.a] ?? 1) * (degrees[edge.b] ?? 1));
  }
}

function ones(bits: number): number {
  let n = bits - ((bits >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return (((n + (n >>> 4)) & 0x0f0f0f0f) * 0x01010101) >>> 24;
}

/** Marks the heaviest edges of each node: with all of them, a layout is a ball of wool. */
function strongOf(edges: readonly Edge[], count: number): Edge[] {
  const kept = new Array<number>(count).fill(0);
  const heaviest = [...edges].sort((x, y) => y.weight - x.weight || x.a - y.a || x.b - y.b);
  return heaviest.filter((edge) => {
    const [ofA = 0, ofB = 0] = [kept[edge.a], kept[edge.b]];
    edge.strong = ofA < strongest || ofB < strongest;
    if (edge.strong) {
      kept[edge.a] = ofA + 1;
      kept[edge.b] = ofB + 1;
    }
    return edge.strong;
  });
}

/** Gives the largest communities their colours. */
function colour(nodes: readonly Node[], labels: readonly number[]): void {
  const sizes = new Map<number, number>();
  for (const label of labels) {
    sizes.set(label, (sizes.get(label) ?? 0) + 1);
  }
  const order = [...sizes].filter(([, size]) => size >= smallest).sort((x, y) => y[1] - x[1] || x[0] - y[0]);
  const colours = new Map(order.slice(0, colourCount).map(([label], i) => [label, i]));
  for (const node of nodes) {
    node.community = colours.get(labels[node.index] ?? -1) ?? -1;
  }
}
