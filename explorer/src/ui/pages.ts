// Pages of rows: nothing here needs a browser.

/** The rows in sight: those from one to before another. */
export interface Range {
  from: number;
  to: number;
}

/** Reads rows. */
export type Read<T> = (offset: number, limit: number) => Promise<readonly T[]>;

export type Page<T> = { state: 'loading' } | { state: 'failed' } | { state: 'done'; rows: readonly T[] };

/** Pages of rows, each read once, and how many rows there are. */
export class Pages<T> {
  readonly pages = new Map<number, Page<T>>();
  total: number;
  ended: boolean;
  /** How often the rows were replaced: what was asked for before is dropped. */
  turn = 0;

  constructor(
    readonly size: number,
    total: number | undefined,
    before: number | undefined,
    public read: Read<T>,
    readonly changed: () => void,
  ) {
    this.ended = total !== undefined;
    this.total = total ?? Math.max(size, before ?? 0);
  }

  /** How many rows there are, if that is known. */
  get known(): number | undefined {
    return this.ended ? this.total : undefined;
  }

  /** Reads the pages of rows that are neither there nor under way. */
  want(from: number, to: number): void {
    for (let n = Math.floor(from / this.size); n * this.size < Math.min(to, this.total); n++) {
      if (!this.pages.has(n)) {
        void this.load(n);
      }
    }
  }

  async load(n: number): Promise<void> {
    this.pages.set(n, { state: 'loading' });
    const offset = n * this.size;
    const { turn } = this;
    try {
      const rows = await this.read(offset, this.ended ? Math.min(this.size, this.total - offset) : this.size);
      if (turn === this.turn) {
        this.put(n, rows);
      }
    } catch {
      if (turn === this.turn) {
        this.pages.set(n, { state: 'failed' });
      }
    }
    this.changed();
  }

  put(n: number, rows: readonly T[]): void {
    this.pages.set(n, { state: 'done', rows });
    if (!this.ended) {
      this.grow(n * this.size, rows.length);
    }
  }

  /** A row that is there. */
  at(index: number): T | undefined {
    const page = this.pages.get(Math.floor(index / this.size));
    return page?.state === 'done' ? page.rows[index % this.size] : undefined;
  }

  // grow adds room for another page after a full one at the end, and ends at a short one.
  private grow(offset: number, count: number): void {
    if (count < this.size) {
      this.total = Math.min(this.total, offset + count);
      this.ended = true;
    } else if (offset + count >= this.total) {
      this.total = offset + 2 * this.size;
    }
  }
}

/**
 * Gives each row a key: a row that was there keeps its own, and those that come get the keys of those that went, in their
 * order, so that elements are changed instead of made.
 */
export function keysOf(before: ReadonlyMap<number, number>, rows: readonly number[]): Map<number, number> {
  const here = new Set(rows);
  const free = [...before].flatMap(([row, key]) => (here.has(row) ? [] : [key]));
  let unused = Math.max(-1, ...before.values()) + 1;
  return new Map(rows.map((row) => [row, before.get(row) ?? free.shift() ?? unused++]));
}
