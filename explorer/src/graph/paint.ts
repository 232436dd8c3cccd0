// Draws a graph. While it moves only what is cheap is drawn, so that also browsers without a graphics card
// keep up: lines of one pixel in few paths, circles by colour, few names.

import { plain, type Text } from '../text';
import { called } from '../ui/person';
import { colourCount, type Edge, type Graph, type Node } from './model';

/** How the graph is looked at. */
export interface View {
  /** In CSS pixels. */
  width: number;
  height: number;
  /** Device pixels of a CSS pixel. */
  density: number;
  /** Scale, and where the origin is. */
  k: number;
  x: number;
  y: number;
}

export interface Colours {
  ground: string;
  text: string;
  edge: string;
  accent: string;
  second: string;
  /** Of communities, then of nodes without one. */
  nodes: string[];
}

export interface Look {
  colours: Colours;
  moving: boolean;
  selected: number | undefined;
  hovered: number | undefined;
  /** Round pictures, by the index of the node. */
  pictures: ReadonlyMap<number, CanvasImageSource>;
}

/** Names that are drawn at most, also while moving. */
const names = { rest: 24, moving: 10 };
const font = '12px system-ui, sans-serif';
const longest = 24;

export function paint(context: CanvasRenderingContext2D, graph: Graph, view: View, look: Look): void {
  const { density, k } = view;
  context.setTransform(density, 0, 0, density, 0, 0);
  context.fillStyle = look.colours.ground;
  context.fillRect(0, 0, view.width, view.height);
  context.setTransform(density * k, 0, 0, density * k, density * view.x, density * view.y);
  paintEdges(context, graph, view, look);
  paintNodes(context, graph, view, look);
  context.setTransform(density, 0, 0, density, 0, 0);
  paintNames(context, graph, view, look);
}

/** Whether two places are beyond the same side of what is seen. */
function isAside(view: View, a: Node, b: Node, margin: number): boolean {
  const left = -view.x / view.k - margin;
  const top = -view.y / view.k - margin;
  const right = left + view.width / view.k + 2 * margin;
  const bottom = top + view.height / view.k + 2 * margin;
  return (
    (a.x < left && b.x < left) || (a.x > right && b.x > right) || (a.y < top && b.y < top) || (a.y > bottom && b.y > bottom)
  );
}

function paintEdges(context: CanvasRenderingContext2D, graph: Graph, view: View, look: Look): void {
  const { selected, colours } = look;
  // Lines of at most one device pixel are drawn much faster than wider ones.
  context.lineWidth = 1 / (view.k * view.density);
  const lines = (edges: readonly Edge[], colour: string, alpha: number) => {
    context.beginPath();
    for (const edge of edges) {
      const a = graph.nodes[edge.a] as Node;
      const b = graph.nodes[edge.b] as Node;
      if (!isAside(view, a, b, 0)) {
        context.moveTo(a.x, a.y);
        context.lineTo(b.x, b.y);
      }
    }
    context.globalAlpha = alpha;
    context.strokeStyle = colour;
    context.stroke();
    context.globalAlpha = 1;
  };
  const quiet = selected === undefined ? 1 : 0.35;
  if (!look.moving) {
    // Many lines are as dark together as few.
    const alpha = Math.max(0.025, Math.min(0.2, 350 / graph.edges.length));
    lines(graph.weak, colours.edge, alpha * quiet);
  }
  lines(graph.strong, colours.edge, 0.4 * quiet);
  if (selected !== undefined) {
    const towards = (edge: Edge) => (edge.a === selected ? edge.who & 1 : edge.who & 2);
    const own = graph.of(selected);
    lines(own.filter((edge) => !towards(edge)), colours.second, 0.9);
    lines(own.filter(towards), colours.accent, 0.9);
  }
}

function paintNodes(context: CanvasRenderingContext2D, graph: Graph, view: View, look: Look): void {
  const seen = graph.nodes.filter((node) => !isAside(view, node, node, node.radius));
  const circles = (nodes: readonly Node[], more: number) => {
    context.beginPath();
    for (const { x, y, radius } of nodes) {
      context.moveTo(x + radius + more, y);
      context.arc(x, y, radius + more, 0, 2 * Math.PI);
    }
  };
  // A ring of the ground parts nodes from what is behind them.
  context.fillStyle = look.colours.ground;
  circles(seen, 1.5);
  context.fill();
  for (let community = -1; community < colourCount; community++) {
    const nodes = seen.filter((node) => node.community === community);
    if (nodes.length) {
      context.fillStyle = look.colours.nodes.at(community) ?? look.colours.text;
      circles(nodes, 0);
      context.fill();
    }
  }
  for (const { index, x, y, radius } of seen) {
    const picture = look.pictures.get(index);
    if (picture) {
      const inner = radius - 1.5; // the ring around it keeps the colour
      context.drawImage(picture, x - inner, y - inner, 2 * inner, 2 * inner);
    }
  }
  const centre = graph.nodes[0];
  const ring = (node: Node | undefined, colour: string, width: number) => {
    if (node) {
      circles([node], 3.5 / view.k);
      context.strokeStyle = colour;
      context.lineWidth = width / view.k;
      context.stroke();
    }
  };
  ring(centre, look.colours.text, 1.5);
  ring(look.selected === undefined ? undefined : graph.nodes[look.selected], look.colours.accent, 3);
}

const widths = new Map<string, number>();

/** What is written beside a node. */
function nameOf({ person }: Node): Text {
  const letters = [...called(person)];
  return letters.length > longest ? plain(letters.slice(0, longest - 1).join('') + '…') : called(person);
}

/** A canvas that takes only what may be shown. */
type Canvas = Omit<CanvasRenderingContext2D, 'fillText' | 'strokeText'> & Record<'fillText' | 'strokeText', (text: Text, x: number, y: number) => void>;

function paintNames(context: Canvas, graph: Graph, view: View, look: Look): void {
  context.font = font;
  context.textAlign = 'center';
  context.textBaseline = 'top';
  context.lineJoin = 'round';
  context.lineWidth = 3;
  context.strokeStyle = look.colours.ground;
  context.fillStyle = look.colours.text;
  const first = [look.hovered, look.selected, 0].filter((index) => index !== undefined);
  const order = [...new Set([...first, ...graph.nodes.keys()])]; // the most followed first
  const taken: [left: number, top: number, right: number, bottom: number][] = [];
  const limit = look.moving ? names.moving : names.rest;
  for (const index of order) {
    const node = graph.nodes[index] as Node;
    const [x, y] = [node.x * view.k + view.x, node.y * view.k + view.y];
    if (taken.length >= limit || (look.moving && !first.includes(index) && index > names.moving)) {
      break;
    }
    if (x < 0 || x > view.width || y < -20 || y > view.height) {
      continue;
    }
    const name = nameOf(node);
    let width = widths.get(name);
    if (width === undefined) {
      width = context.measureText(name).width;
      widths.set(name, width);
    }
    const top = y + node.radius * view.k + 6;
    const middle = Math.max(width / 2, Math.min(view.width - width / 2, x)); // none is cut off at a side
    const box: [number, number, number, number] = [middle - width / 2 - 2, top, middle + width / 2 + 2, top + 14];
    if (!first.includes(index) && taken.some(([l, t, r, b]) => box[0] < r && box[2] > l && box[1] < b && box[3] > t)) {
      continue;
    }
    taken.push(box);
    if (!look.moving || first.includes(index)) {
      context.strokeText(name, middle, top);
    }
    context.fillText(name, middle, top);
  }
}
