// Where nodes go. Forces begin from the same places and use the same random numbers each time.

import { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY, type Simulation, type SimulationLinkDatum } from 'd3-force';
import type { Graph, Node } from './model';

type Link = SimulationLinkDatum<Node> & { weight: number };
export type Layout = Simulation<Node, Link>;

/** Places of nodes by address. */
export type Places = ReadonlyMap<string, readonly [number, number]>;

const turn = Math.PI * (3 - Math.sqrt(5));

/**
 * Places the nodes: those that were in the picture before stay where they are, the others are around the
 * first one in a spiral, the most followed next to it.
 */
export function place(graph: Graph, before: Places): void {
  const [centre] = graph.nodes;
  if (!centre) {
    return;
  }
  const [cx, cy] = before.get(centre.person.address) ?? [0, 0];
  for (const node of graph.nodes) {
    const known = before.get(node.person.address);
    const distance = 22 * Math.sqrt(node.index + (node.index ? 3 : 0));
    node.x = known?.[0] ?? cx + distance * Math.cos(node.index * turn);
    node.y = known?.[1] ?? cy + distance * Math.sin(node.index * turn);
  }
  centre.fx = centre.x;
  centre.fy = centre.y;
}

/** Returns the forces of a finished graph. They do nothing by themselves: whoever draws calls tick. */
export function layout(graph: Graph): Layout {
  const [centre] = graph.nodes;
  const links = graph.strong.map(({ a, b, weight }): Link => ({ source: a, target: b, weight }));
  const degrees = new Map<number, number>();
  for (const { source, target } of links) {
    for (const end of [source as number, target as number]) {
      degrees.set(end, (degrees.get(end) ?? 0) + 1);
    }
  }
  const fewest = (link: Link) => Math.min(degrees.get((link.source as Node).index) ?? 1, degrees.get((link.target as Node).index) ?? 1);
  // Nothing but the middle holds those that have nobody in common with others: they would drift away.
  const pull = (node: Node) => (degrees.has(node.index) ? 0.07 : 0.2);
  const spread = 1 / Math.sqrt(graph.nodes.length); // few nodes have more room for their names
  return forceSimulation<Node, Link>(graph.nodes)
    .stop()
    .alphaDecay(0.028)
    .force('links', forceLink<Node, Link>(links).distance(24 + 240 * spread).strength((link) => Math.min(1, 0.4 + link.weight) / fewest(link)))
    .force('charge', forceManyBody<Node>().strength((node) => (node.index === 0 ? -400 : -(50 + 3 * node.radius) * (1 + 8 * spread))).distanceMax(500).theta(1))
    .force('room', forceCollide<Node>((node) => node.radius + 2.5))
    .force('x', forceX<Node>(centre?.x ?? 0).strength(pull))
    .force('y', forceY<Node>(centre?.y ?? 0).strength(pull));
}

/** Where nodes are, with their circles. */
export interface Bounds {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** So many nodes of a hundred may be beyond the picture, if they would make it smaller by more than a fifth. */
const outliers = 4;
const worth = 1.2;

/** The part of a graph that a picture shows: all of it, unless few nodes are so far off that the others would be small. */
export function boundsOf(nodes: readonly Node[]): Bounds {
  const of = (some: readonly Node[]): Bounds => ({
    left: Math.min(...some.map(({ x, radius }) => x - radius)),
    top: Math.min(...some.map(({ y, radius }) => y - radius)),
    right: Math.max(...some.map(({ x, radius }) => x + radius)),
    bottom: Math.max(...some.map(({ y, radius }) => y + radius)),
  });
  const size = ({ left, top, right, bottom }: Bounds): number => Math.max(right - left, bottom - top);
  const middle = (values: number[]): number => values.sort((a, b) => a - b)[values.length >> 1] ?? 0;
  const [cx, cy] = [middle(nodes.map(({ x }) => x)), middle(nodes.map(({ y }) => y))];
  const nearest = [...nodes].sort((a, b) => Math.hypot(a.x - cx, a.y - cy) - Math.hypot(b.x - cx, b.y - cy));
  const [all, most] = [of(nodes), of(nearest.slice(0, Math.ceil((nodes.length * (100 - outliers)) / 100)))];
  return size(all) > worth * size(most) ? most : all;
}

/** Whether the nodes have found their places. */
export const isSettled = (forces: Layout): boolean => forces.alpha() < forces.alphaMin() && forces.alphaTarget() < forces.alphaMin();
