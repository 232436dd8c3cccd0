// Rows by the tens of thousands: only those in sight are in the document, and their data are read by pages
// when they come into sight. The page itself scrolls, as readers of phones expect. While it does, elements of rows that
// went become those of rows that come, and are moved by transforms, which change no layout.

import type { Children } from '../elements';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { rowsTexts } from '../texts/accounts';
import { renewal } from '../data/site';
import { gap, type Text } from '../text';
import { texts } from '../texts/first';
import { keysOf, Pages, type Read } from './pages';

export interface RowsProps<T> {
  /** What the rows are, for those who do not see them. */
  label: Text;
  /** Names where the rows come from. Another one starts anew. */
  source: string;
  /** How many rows there are. Without it they end where a page is shorter than asked for. */
  total?: number | undefined;
  /** The height of each row in CSS pixels. */
  height: number;
  /** Reads rows. */
  page: Read<T>;
  /** Rows of a page; 100 by default. */
  pageSize?: number;
  /** Renders a row: in a table its cells, which need the role. Best not made anew each time. */
  row: (value: T, index: number) => Children;
  /** The cells of a table's head. Without it the rows are a list. */
  head?: Children;
  /** What is shown instead of no rows. */
  empty?: Children;
  /** A row to bring into sight and to focus, again with each new object. */
  goal?: { index: number } | undefined;
  /** Called when rows are shown for the first time, and how many there are is known. */
  onShown?: (total: number | undefined) => void;
}

/** Browsers draw no element that is much higher, in CSS pixels. */
const highest = 15_000_000;
/** Pages are asked for at most this often while scrolling, in milliseconds. */
const pause = 80;

// How many rows there were of those whose number is not known before: the router scrolls back to where the
// reader was once the page is long enough for it.
const counts = new Map<string, number>();

/** The row that an element is in. */
function indexOf(target: EventTarget | null): number | undefined {
  const row = target instanceof Element ? target.closest<HTMLElement>('[data-index]') : null;
  return row ? Number(row.dataset['index']) : undefined;
}

const inner = 'a[href], button, input, select';

function focusRow(row: HTMLElement): void {
  (row.querySelector<HTMLElement>(inner) ?? row).focus({ preventScroll: true });
}

export function Rows<T>(props: RowsProps<T>) {
  return <Sourced key={props.source} {...props} />;
}

function Sourced<T>({ label, source, total, height, page, pageSize = 100, row, head, empty, goal, onShown }: RowsProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [, redraw] = useState(0);
  const mounted = useRef(true);
  const change = () => mounted.current && redraw((n) => n + 1);
  const pages = useMemo(() => new Pages(pageSize, total, counts.get(source), page, change), []);
  if (total === undefined) {
    counts.set(source, pages.total);
  }
  const count = Math.min(pages.total, Math.floor(highest / height));
  const [range, setRange] = useState({ from: 0, to: 0 });
  const [focused, setFocused] = useState<number>();
  const moving = useRef<ScrollLogicalPosition | undefined>(undefined);
  // Where the rows begin in the page, how much of it is on the screen, and how far it was scrolled when that was last seen.
  const origin = useRef(0);
  const screen = useRef(0);
  const seen = useRef(scrollY);
  const isFast = useRef(false);
  const calm = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  // When the page is renewed, rows stay where the reader sees them, though others come before them.
  const shift = useRef(0); // of the indexes of those that have been in the document, to their keys
  const jump = useRef(0);
  const keys = useRef(new Map<number, number>());
  const given = useRef({ page, total });
  useEffect(() => {
    if (given.current.page !== page || given.current.total !== total) {
      given.current = { page, total };
      const top = () => scrollY - origin.current;
      const seen = () => focused ?? Math.max(0, Math.ceil(top() / height));
      renewal.rows(pages, page, total, range, seen, (by) => {
        shift.current += by;
        jump.current = top() > 0 ? by * height : 0;
        setFocused((old) => (old === undefined ? old : old + by));
      });
    }
  }, [page, total]);

  // sight finds the rows that are on the screen, and some around them. It asks for nothing that is laid out.
  const sight = () => {
    const top = scrollY - origin.current;
    // Who scrolls fast sees all rows anew in each frame: more of them than needed cost too much, and none is read.
    isFast.current = Math.abs(scrollY - seen.current) > screen.current / 2;
    seen.current = scrollY;
    clearTimeout(calm.current);
    if (isFast.current) {
      calm.current = setTimeout(() => {
        sight();
        ask();
      }, pause);
    }
    const around = isFast.current ? 0 : screen.current / 2;
    const step = isFast.current ? 1 : 4; // rows come and go by this many, so that not each frame has some
    const from = Math.max(0, Math.floor((top - around) / height / step) * step);
    const to = Math.min(count, Math.ceil((top + screen.current + around) / height / step) * step);
    setRange((old) => (old.from === from && old.to === to ? old : { from, to: Math.max(from, to) }));
  };

  useLayoutEffect(() => {
    mounted.current = true;
    return () => {
      mounted.current = false;
    };
  }, []);
  useLayoutEffect(() => {
    const measure = () => {
      screen.current = innerHeight;
      origin.current = (box.current?.getBoundingClientRect().top ?? 0) + scrollY;
      sight();
    };
    measure();
    // What is above the rows may change, and the window.
    const sized = new ResizeObserver(measure);
    sized.observe(document.body);
    addEventListener('scroll', sight, { passive: true });
    addEventListener('resize', measure);
    return () => {
      clearTimeout(calm.current);
      sized.disconnect();
      removeEventListener('scroll', sight);
      removeEventListener('resize', measure);
    };
  }, [count, height, pages]);

  // Rows that are only passed by are not read: what is in sight is asked for, then nothing for a while.
  const wanted = useRef(range);
  wanted.current = range;
  const waiting = useRef(false);
  const want = () => mounted.current && !isFast.current && pages.want(wanted.current.from, wanted.current.to);
  const ask = () => {
    if (!waiting.current) {
      waiting.current = true;
      want();
      setTimeout(() => {
        waiting.current = false;
        want();
      }, pause);
    }
  };
  useEffect(ask, [range, pages, count]);

  const shown = useRef(false);
  useEffect(() => {
    if (!shown.current && (count === 0 || [...pages.pages.values()].some((p) => p.state === 'done'))) {
      shown.current = true;
      onShown?.(pages.known);
    }
  });

  // The focus goes to a row once it is in the document.
  useLayoutEffect(() => {
    if (goal && goal.index < count) {
      moving.current = 'center';
      setFocused(goal.index);
    }
  }, [goal]);
  useLayoutEffect(() => {
    if (jump.current) {
      scrollBy({ top: jump.current, behavior: 'instant' });
      jump.current = 0;
    }
    if (focused === undefined) {
      return;
    }
    const element = box.current?.querySelector<HTMLElement>(`[data-index="${focused}"]`);
    if (!element) {
      return;
    }
    if (moving.current) {
      element.scrollIntoView({ block: moving.current, behavior: 'instant' });
      moving.current = undefined;
      focusRow(element);
    } else if (element === document.activeElement) {
      focusRow(element); // its link has arrived
    }
  });

  const onKeyDown = (event: KeyboardEvent) => {
    const at = indexOf(event.target);
    if (at === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) {
      return;
    }
    const screenful = Math.max(1, Math.floor(innerHeight / height) - 2);
    const steps: Record<string, number> = {
      ArrowDown: at + 1,
      ArrowUp: at - 1,
      PageDown: at + screenful,
      PageUp: at - screenful,
      Home: 0,
      End: count - 1,
    };
    const to = steps[event.key];
    if (to !== undefined) {
      event.preventDefault();
      moving.current = 'nearest';
      setFocused(Math.max(0, Math.min(count - 1, to)));
      redraw((n) => n + 1); // the row may be the same one, out of sight
    }
  };
  const onFocusIn = (event: FocusEvent) => setFocused(indexOf(event.target));
  const onFocusOut = (event: FocusEvent) => {
    const next = indexOf(event.relatedTarget);
    if (next === undefined && !moving.current) {
      setFocused(undefined);
    }
  };

  if (count === 0) {
    return <>{empty ?? <p class="quiet">{texts.missing}</p>}</>;
  }
  const indexes: number[] = [];
  for (let i = range.from; i < Math.min(range.to, count); i++) {
    indexes.push(i);
  }
  // A row with the focus stays in the document, or the focus would be lost.
  if (focused !== undefined && focused < count && (focused < range.from || focused >= range.to)) {
    indexes.push(focused);
    indexes.sort((a, b) => a - b);
  }
  const retry = (n: number) => {
    void pages.load(n);
    change();
  };
  const asked = new Set<number>();
  keys.current = keysOf(keys.current, indexes.map((index) => index - shift.current));
  const all = indexes.map((index) => {
    const n = Math.floor(index / pageSize);
    const loaded = pages.pages.get(n);
    const value = pages.at(index);
    const failed = loaded?.state === 'failed' && !asked.has(n);
    asked.add(n);
    return (
      <Row
        key={keys.current.get(index - shift.current)}
        index={index}
        top={index * height}
        height={height}
        count={pages.known}
        table={!!head}
        value={value}
        row={row}
        retry={failed ? () => retry(n) : undefined}
        missing={loaded?.state === 'done' && value === undefined}
      />
    );
  });
  const inside = { ref: box, class: 'rows', style: { height: `${count * height}px` }, onKeyDown, onFocusIn, onFocusOut };
  return head ? (
    <div role="table" aria-label={label} aria-rowcount={pages.known === undefined ? -1 : pages.known + 1} class="table">
      <div role="rowgroup" class="rows-head">
        <div role="row" aria-rowindex={1} class="row">
          {head}
        </div>
      </div>
      <div role="rowgroup" {...inside}>
        {all}
      </div>
    </div>
  ) : (
    <div role="list" aria-label={label} {...inside}>
      {all}
    </div>
  );
}

interface RowProps<T> {
  index: number;
  top: number;
  height: number;
  count: number | undefined;
  table: boolean;
  value: T | undefined;
  row: (value: T, index: number) => Children;
  retry: (() => void) | undefined;
  missing: boolean;
}

function Row<T>({ index, top, height, count, table, value, row, retry, missing }: RowProps<T>) {
  const content = useMemo(() => (value === undefined ? undefined : row(value, index)), [value, row, index]);
  const place = table
    ? { role: 'row' as const, 'aria-rowindex': index + 2 }
    : { role: 'listitem' as const, 'aria-posinset': index + 1, 'aria-setsize': count ?? -1 };
  const cell = table ? 'cell' : undefined;
  return (
    <div {...place} class="row" data-index={index} tabIndex={-1} style={{ transform: `translateY(${top}px)`, height: `${height}px` }}>
      {content ??
        (retry ? (
          <span role={cell} class="row-failed">
            {texts.failed}{gap}
            <button type="button" onClick={retry}>
              {texts.retry}
            </button>
          </span>
        ) : (
          <span role={cell ?? 'img'} class="row-waits" aria-label={missing ? rowsTexts.gone : texts.loading} />
        ))}
    </div>
  );
}
