// A site that is replaced while a page is open. A view is to show objects of one site only, but buckets have no versions:
// so whoever has read objects looks afterwards whether the site is still the same.

import { ready } from './search';
import { base, replace, site } from './site';

const often = 5 * 60_000; // between two looks, in milliseconds
const seldom = 30_000; // when the page is seen again
const burst = 400; // without another object, until the look after a view has loaded
const calm = 60_000; // between two renewals that nobody has asked for

type Root = Awaited<ReturnType<typeof site.root>>;

/** Watches the site. told hears whether what is shown is of an older one. */
export class Watch {
  private shown: Root | undefined;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly ended = new AbortController();
  private looking = false;
  private again = false;
  private looked = -Infinity; // when the last look began
  private confirmed = -Infinity; // the same, of the last one that found the site as it is shown
  private entered = 0; // when the reader came to the view
  private renewed = -Infinity;
  private isNewer = false;

  constructor(private readonly told: (isNewer: boolean) => void) {}

  async start(): Promise<void> {
    const root = await site.root();
    if (root.live || this.ended.signal.aborted) {
      return; // live sites tell (data/live.ts)
    }
    this.shown = root;
    const { signal } = this.ended;
    const seen = new PerformanceObserver((list) => {
      if (list.getEntries().some(({ name }) => name.startsWith(base) && !/(\/_site|\.js|\.css)$/.test(name))) {
        this.soon();
      }
    });
    seen.observe({ type: 'resource', buffered: true });
    const regular = setInterval(() => this.maybe(often), often);
    signal.addEventListener('abort', () => {
      seen.disconnect();
      clearInterval(regular);
      clearTimeout(this.timer);
    });
    document.addEventListener('visibilitychange', () => this.maybe(seldom), { signal });
  }

  end(): void {
    this.ended.abort();
  }

  /** The reader has come to another view, which may as well begin with the newer site. */
  enter(): void {
    this.entered = performance.now();
    if (this.isNewer) {
      this.renew();
    }
  }

  /** Shows the newer site. */
  renew(): void {
    this.renewed = performance.now();
    const before = this.shown;
    this.shown = undefined;
    this.tell(false);
    replace();
    void ready().catch(() => undefined); // names to suggest
    void site.root().then((root) => (this.shown = root), () => (this.shown = before));
  }

  private tell(isNewer: boolean): void {
    this.isNewer = isNewer;
    this.told(isNewer);
  }

  private maybe(after: number): void {
    if (!document.hidden && performance.now() - this.looked >= after) {
      void this.look();
    }
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.look(), burst);
  }

  private async look(): Promise<void> {
    if (this.looking) {
      this.again = true;
      return;
    }
    this.looking = true;
    const begun = (this.looked = performance.now());
    const newest = await read(this.ended.signal);
    this.looking = false;
    const { shown } = this;
    if (newest && shown && !this.ended.signal.aborted) {
      if (JSON.stringify(newest) === JSON.stringify(shown)) {
        this.confirmed = begun;
        this.tell(false);
      } else if (Date.parse(newest.as_of) >= Date.parse(shown.as_of)) {
        // A view that nobody has seen for long begins again at once: it may have objects of both.
        if (this.entered > this.confirmed && begun - this.renewed > calm) {
          this.renew();
        } else {
          this.tell(true);
        }
      }
    }
    if (this.again) {
      this.again = false;
      this.soon();
    }
  }
}

/** The root that the site has now; undefined if it cannot be had, which is nothing new. */
async function read(signal: AbortSignal): Promise<Root | undefined> {
  try {
    const response = await fetch(new URL('_site', base), { cache: 'no-cache', signal });
    return response.ok ? ((await response.json()) as Root) : undefined;
  } catch {
    return undefined;
  }
}
