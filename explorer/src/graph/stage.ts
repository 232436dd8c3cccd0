// A canvas with a graph that can be dragged, zoomed and walked through. It draws only when something moves.

import { drag, type D3DragEvent } from 'd3-drag';
import { select, type Selection } from 'd3-selection';
import { zoom, zoomIdentity, zoomTransform, type D3ZoomEvent, type ZoomBehavior } from 'd3-zoom';
import { boundsOf, isSettled, layout, place, type Layout, type Places } from './layout';
import type { Graph, Node } from './model';
import { paint, type Colours, type Look } from './paint';

export interface Calls {
  /** A node was chosen, or none. */
  select(index: number | undefined): void;
  /** The reader wants to go on to a node. */
  walk(index: number): void;
  /** The reader has scrolled the page over the graph, perhaps to zoom or to move it. */
  scrolled(by: 'wheel' | 'finger'): void;
  /** The nodes were drawn for the first time. */
  shown(): void;
}

/** How far from a node one may point, in CSS pixels. */
const reach = 14;
/** Room around the graph. */
const margin = 32;
/** For how long a frame may move nodes, in milliseconds: where they are seen, and where they are not. */
const ahead = { seen: 5, unseen: 30 };
const scales: [number, number] = [0.1, 8];

/** Whether a gesture is for the graph, and not for the page around it. */
function isMeant(event: Event): boolean {
  if (event instanceof WheelEvent) {
    return event.ctrlKey || event.metaKey;
  }
  return 'touches' in event ? (event as TouchEvent).touches.length > 1 : !(event as MouseEvent).ctrlKey && !(event as MouseEvent).button;
}

/** How far a wheel zooms: browsers report pinches on a touch pad as small turns of a wheel with Ctrl. */
function deltaOf({ deltaY, deltaMode }: WheelEvent): number {
  const unit = deltaMode === WheelEvent.DOM_DELTA_LINE ? 0.05 : deltaMode ? 1 : 0.002;
  return -deltaY * unit * (deltaMode === 0 && Math.abs(deltaY) < 30 ? 5 : 1);
}

type Subject = { node: Node; x: number; y: number };

export class Stage {
  private readonly context: CanvasRenderingContext2D;
  private readonly selection: Selection<HTMLCanvasElement, unknown, null, undefined>;
  private readonly zooming: ZoomBehavior<HTMLCanvasElement, unknown>;
  private readonly ended = new AbortController();
  private forces: Layout | undefined;
  private look: Look;
  private frame = 0;
  /** Whether the reader has moved the picture, so that it is no longer fitted to the canvas. */
  private isTheirs = false;
  private gestures = 0;
  private isShown = false;
  private width = 0;
  private height = 0;

  constructor(
    private readonly canvas: HTMLCanvasElement,
    private readonly graph: Graph,
    colours: Colours,
    before: Places,
    /** Whether nothing may move by itself, now. */
    private readonly isCalm: () => boolean,
    private readonly calls: Calls,
  ) {
    this.context = canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
    this.look = { colours, moving: false, selected: undefined, hovered: undefined, pictures: new Map() };
    this.selection = select(canvas);
    place(graph, before);
    this.zooming = zoom<HTMLCanvasElement, unknown>()
      .scaleExtent(scales)
      .filter((event: Event) => isMeant(event))
      .wheelDelta(deltaOf)
      .on('start', () => this.gesture(1))
      .on('zoom', (event: D3ZoomEvent<HTMLCanvasElement, unknown>) => {
        this.isTheirs ||= !!event.sourceEvent;
        this.wake();
      })
      .on('end', () => this.gesture(-1));
    this.selection.call(this.dragging()).call(this.zooming).on('dblclick.zoom', null);
    this.listen();
    const sized = new ResizeObserver(() => this.resize());
    sized.observe(canvas);
    this.ended.signal.addEventListener('abort', () => sized.disconnect());
    this.resize();
  }

  /** Draws again, because follows have arrived. */
  changed(): void {
    this.wake();
  }

  /** Lays the graph out, which is finished. */
  arrange(): void {
    this.forces = layout(this.graph);
    this.wake();
  }

  select(index: number | undefined): void {
    this.look = { ...this.look, selected: index };
    const node = index === undefined ? undefined : this.graph.nodes[index];
    if (node && !this.isSeen(node)) {
      this.isTheirs = true;
      this.zooming.translateTo(this.selection, node.x, node.y);
    }
    this.wake();
  }

  /** The nearest node to the selected one in a direction. */
  nearest(dx: number, dy: number): number {
    const from = this.graph.nodes[this.look.selected ?? 0];
    let best = from?.index ?? 0;
    let least = Infinity;
    for (const node of this.graph.nodes) {
      const [x, y] = [node.x - (from?.x ?? 0), node.y - (from?.y ?? 0)];
      const along = x * dx + y * dy;
      const aside = Math.abs(x * dy - y * dx);
      if (along > 0 && aside < 2 * along && along + 2 * aside < least) {
        [best, least] = [node.index, along + 2 * aside];
      }
    }
    return best;
  }

  zoomBy(factor: number): void {
    this.isTheirs = true;
    this.zooming.scaleBy(this.selection, factor);
  }

  /** Shows the graph as it is at first, and keeps showing it so. */
  fitAll(): void {
    this.isTheirs = false;
    this.wake();
  }

  paintWith(colours: Colours): void {
    this.look = { ...this.look, colours };
    this.wake();
  }

  showPictures(pictures: ReadonlyMap<number, CanvasImageSource>): void {
    this.look = { ...this.look, pictures };
    this.wake();
  }

  /** Where the nodes are. */
  places(): Places {
    return new Map(this.graph.nodes.map(({ person, x, y }) => [person.address, [x, y]]));
  }

  end(): void {
    this.ended.abort();
    cancelAnimationFrame(this.frame);
    this.selection.on('.zoom', null).on('.drag', null);
  }

  private gesture(change: number): void {
    this.gestures += change;
    this.wake();
  }

  private resize(): void {
    const { clientWidth, clientHeight } = this.canvas;
    if (!clientWidth || !clientHeight) {
      return;
    }
    this.width = clientWidth;
    this.height = clientHeight;
    this.canvas.width = Math.round(clientWidth * devicePixelRatio);
    this.canvas.height = Math.round(clientHeight * devicePixelRatio);
    if (!this.isTheirs) {
      this.fit(1);
    }
    this.draw(this.isBusy());
    this.wake();
  }

  private listen(): void {
    const { signal } = this.ended;
    const at = (event: MouseEvent) => {
      const box = this.canvas.getBoundingClientRect();
      return this.nodeAt(event.clientX - box.left, event.clientY - box.top)?.index;
    };
    this.canvas.addEventListener('click', (event) => this.calls.select(at(event)), { signal });
    this.canvas.addEventListener(
      'dblclick',
      (event) => {
        const index = at(event);
        if (index !== undefined) {
          this.calls.walk(index);
        }
      },
      { signal },
    );
    // The wheel and one finger scroll the page, which should not be a riddle.
    this.canvas.addEventListener('wheel', (event) => !isMeant(event) && this.calls.scrolled('wheel'), { signal, passive: true });
    this.canvas.addEventListener('touchmove', (event) => !isMeant(event) && this.calls.scrolled('finger'), { signal, passive: true });
    const hover = (index: number | undefined) => {
      if (index !== this.look.hovered) {
        this.look = { ...this.look, hovered: index };
        this.canvas.style.cursor = index === undefined ? '' : 'pointer';
        this.wake();
      }
    };
    this.canvas.addEventListener('pointermove', (event) => this.gestures === 0 && hover(at(event)), { signal });
    this.canvas.addEventListener('pointerleave', () => hover(undefined), { signal });
  }

  private nodeAt(x: number, y: number): Node | undefined {
    const at = zoomTransform(this.canvas);
    const [gx, gy] = at.invert([x, y]);
    let best: Node | undefined;
    let least = Infinity;
    for (const node of this.graph.nodes) {
      const beyond = Math.hypot(node.x - gx, node.y - gy) - node.radius;
      if (beyond < least && beyond * at.k < reach - Math.min(reach, node.radius * at.k) + 2) {
        [best, least] = [node, beyond];
      }
    }
    return best;
  }

  private dragging() {
    type Event = D3DragEvent<HTMLCanvasElement, unknown, Subject>;
    const move = ({ subject: { node }, x, y }: Event) => {
      [node.fx, node.fy] = zoomTransform(this.canvas).invert([x, y]);
      // Before there are forces, nothing else moves it.
      [node.x, node.y] = [node.fx, node.fy];
      this.wake();
    };
    return drag<HTMLCanvasElement, unknown, Subject | undefined>()
      .container(this.canvas)
      .touchable(false) // fingers scroll, or move the whole
      .subject((event: { x: number; y: number }) => {
        const node = this.nodeAt(event.x, event.y);
        const [x, y] = zoomTransform(this.canvas).apply([node?.x ?? 0, node?.y ?? 0]);
        return node && { node, x, y };
      })
      .on('start', () => {
        this.isTheirs = true;
        if (!this.isCalm()) {
          this.forces?.alphaTarget(0.2).alpha(Math.max(this.forces.alpha(), 0.2)); // the others follow
        }
        this.gesture(1);
      })
      .on('drag', move)
      .on('end', ({ subject: { node } }: Event) => {
        this.forces?.alphaTarget(0);
        if (node.index !== 0) {
          [node.fx, node.fy] = [null, null];
        }
        this.gesture(-1);
      });
  }

  private isSeen({ x, y }: Node): boolean {
    const [sx, sy] = zoomTransform(this.canvas).apply([x, y]);
    return sx > 0 && sy > 0 && sx < this.width && sy < this.height;
  }

  private isBusy(): boolean {
    return this.gestures > 0 || (!!this.forces && !isSettled(this.forces));
  }

  private wake(): void {
    if (!this.frame && !this.ended.signal.aborted) {
      this.frame = requestAnimationFrame(() => this.step());
    }
  }

  private step(): void {
    this.frame = 0;
    const forces = this.forces;
    if (forces) {
      // While nobody drags, the places are found sooner.
      const until = performance.now() + (this.isCalm() && !this.isShown ? ahead.unseen : ahead.seen);
      do {
        forces.tick(isSettled(forces) ? 0 : 1);
      } while (this.gestures === 0 && !isSettled(forces) && performance.now() < until);
    }
    const isFitting = !this.isTheirs && this.fit(this.isCalm() ? 1 : 0.12);
    const busy = this.isBusy() || isFitting;
    this.draw(busy);
    // A gesture wakes by itself; what moves by forces goes on.
    if (isFitting || (forces && !isSettled(forces))) {
      this.wake();
    }
  }

  /** Moves a part of the way to where the nodes are seen; returns whether there is more to go. */
  private fit(part: number): boolean {
    const { left, top, right, bottom } = boundsOf(this.graph.nodes);
    const room = { x: this.width - 2 * margin, y: this.height - 2 * margin };
    const k = Math.max(scales[0], Math.min(2, room.x / (right - left), room.y / (bottom - top)));
    const x = this.width / 2 - (k * (left + right)) / 2;
    const y = this.height / 2 - (k * (top + bottom)) / 2;
    const now = zoomTransform(this.canvas);
    const close = Math.abs(k / now.k - 1) < 0.005 && Math.hypot(x - now.x, y - now.y) < 1;
    const step = close ? 1 : part;
    const next = zoomIdentity.translate(now.x + (x - now.x) * step, now.y + (y - now.y) * step).scale(now.k + (k - now.k) * step);
    if (next.k !== now.k || next.x !== now.x || next.y !== now.y) {
      this.gestures++; // the events of this change are not a reason to draw
      this.zooming.transform(this.selection, next);
      this.gestures--;
    }
    return step !== 1;
  }

  private draw(moving: boolean): void {
    if (!this.width) {
      return;
    }
    if (this.isCalm() && !this.isShown && !(this.forces && isSettled(this.forces))) {
      this.context.fillStyle = this.look.colours.ground;
      this.context.fillRect(0, 0, this.canvas.width, this.canvas.height);
      return;
    }
    const { k, x, y } = zoomTransform(this.canvas);
    const view = { width: this.width, height: this.height, density: this.canvas.width / this.width, k, x, y };
    paint(this.context, this.graph, view, { ...this.look, moving });
    if (!this.isShown) {
      this.isShown = true;
      this.calls.shown();
    }
  }
}
