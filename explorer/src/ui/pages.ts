// Pages of rows: nothing here needs a browser.

/** Reads rows. */
export type Read<T> = (offset: number, limit: number) => Promise<readonly T[]>;

export type Page<T> = { state: 'loading' } | { state: 'failed' } | { state: 'done'; rows: readonly T[] };

/** Pages of rows, each read once, and how many rows there are. */
export class Pages<T> {
  readonly pages = new Map<number, Page<T>>();
  total: number;
  private ended: boolean;

  constructor(
    readonly size: number,
    total: number | undefined,
    before: number | undefined,
    public read: Read<T>,
    private readonly changed: () => void,
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
    try {
      const rows = await this.read(offset, this.ended ? Math.min(this.size, this.total - offset) : this.size);
      this.pages.set(n, { state: 'done', rows });
      if (!this.ended) {
        this.grow(offset, rows.length);
      }
    } catch {
      this.pages.set(n, { state: 'failed' });
    }
    this.changed();
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
