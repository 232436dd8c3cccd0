// Where the site is live: what is on the screen renews itself when a round of the site changes it.
// It imports nothing, so that the first view stays in as few files.

import type { Pages, Range, Read } from '../ui/pages';
import type * as Data from './site';

/** A round, as the stream of events has it. */
interface Round {
  heads: Record<string, number>;
  as_of: string;
  accounts?: string[];
  lists?: string[];
  /** Whether more changed than are named. */
  many?: boolean;
}

const pause = 2000; // milliseconds between two renewals
const longest = 60_000; // until the next attempt after many that failed
const calm = 60_000; // between two announcements

/**
 * Whether a round changed what is on the screen. It names accounts and lists, which links of the page lead to. The start
 * and the leaderboards change with each.
 */
function concerns({ accounts = [], lists = [], many }: Round): boolean {
  const changed = new Set([...accounts.map((address) => `#/a/${address}`), ...lists.map((token) => `#/l/${token}`)]);
  const links = Array.from(document.querySelectorAll('main a[href^="#/"]'), (link) => link.getAttribute('href') ?? '');
  return !!many || /^(#\/?(\?.*)?|#\/boards\b.*)?$/.test(location.hash) ||
    [location.hash, ...links].some((to) => changed.has(to.replace(/\?.*/, '').split('/', 3).join('/')));
}

/** Rows of accounts are told apart by their addresses. */
const nameOf = (row: unknown): unknown => (row as { address?: unknown } | undefined)?.address;

/**
 * Reads rows in sight anew, of which there may be more or fewer now. What was read before stays until all of them are
 * there. moved is called before that, with how far the row that the reader sees first has moved.
 */
async function rows<T>(pages: Pages<T>, read: Read<T>, total: number | undefined, range: Range, seen: () => number, moved: (by: number) => void): Promise<void> {
  const turn = ++pages.turn;
  const { size } = pages;
  const all = new Map<number, readonly T[]>();
  for (let n = Math.floor(range.from / size); n === 0 || n * size < range.to; n++) {
    const limit = total === undefined ? size : Math.min(size, total - n * size);
    all.set(n, limit > 0 ? await read(n * size, limit) : []);
  }
  if (turn !== pages.turn) {
    return;
  }
  const first = seen();
  const name = nameOf(pages.at(first));
  for (let by = 0; name !== undefined && by < size; by = by > 0 ? -by : 1 - by) {
    if (nameOf(all.get(Math.floor((first + by) / size))?.[(first + by) % size]) === name) {
      moved(by);
      break;
    }
  }
  pages.read = read;
  pages.ended = total !== undefined;
  pages.total = total ?? pages.total;
  pages.pages.clear();
  all.forEach((page, n) => pages.put(n, page));
  pages.changed();
}

/**
 * Follows the rounds of a site, of which known gives the root that the page has. told is called with how new the page is,
 * and whether more rounds will be heard; renewed when what is on the screen is renewed, but rarely. The result ends it.
 */
export function follow(
  { base, renew, renewal }: Pick<typeof Data, 'base' | 'renew' | 'renewal'>,
  known: () => Promise<{ as_of: string }>,
  told: (asOf: string, isLive: boolean) => void,
  renewed: (asOf: string) => void,
): () => void {
  let asOf = '';
  let due = ''; // blocks that the screen does not show yet
  let waits: ReturnType<typeof setTimeout> | undefined;
  let attempts = 0;
  let announced = 0;
  let source: EventSource | undefined;
  let reopens: ReturnType<typeof setTimeout> | undefined;
  let failures = 0;
  const ended = new AbortController();

  const act = () => {
    if (due && !waits && !document.hidden) {
      const blocks = due;
      due = '';
      waits = setTimeout(() => {
        waits = undefined;
        act();
      }, Math.min(longest, pause * 2 ** attempts));
      renew(blocks, true);
      if (Date.now() - announced > calm) {
        announced = Date.now();
        renewed(asOf);
      }
      // What fails stays as it was, and is tried again later and later.
      renewal.failed = () => {
        if (!due) {
          due = blocks;
          attempts++;
        }
      };
    }
  };
  const hear = (newer: string, blocks: string, isShown: boolean) => {
    asOf = newer;
    told(asOf, true);
    attempts = 0;
    if (due || isShown) {
      due = blocks;
      act();
    } else {
      renew(blocks, false);
    }
  };

  /** Looks whether there were rounds that nobody has heard of. */
  const check = async () => {
    const response = await fetch(new URL('_site', base), { cache: 'no-store', signal: ended.signal });
    const root = (await response.json()) as { live?: boolean; as_of: string };
    const heads = response.headers.get('X-Heads');
    asOf = response.headers.get('X-As-Of') ?? asOf;
    if (heads && root.live && root.as_of !== (await known()).as_of) {
      hear(asOf, heads, true);
    }
    told(asOf, !!root.live);
  };
  const open = () => {
    source = new EventSource(new URL('_live/events', base));
    const missed = () => void check().catch(() => undefined); // the next event tells
    source.addEventListener('open', () => {
      failures = 0;
      missed();
    });
    source.addEventListener('reset', missed);
    source.addEventListener('round', ({ data }: MessageEvent<string>) => {
      const round = JSON.parse(data) as Round;
      hear(round.as_of, Object.entries(round.heads).map((head) => head.join(':')).join(), concerns(round));
    });
    source.addEventListener('error', () => {
      told(asOf, false);
      // Browsers connect again by themselves, unless the answer was an error.
      if (source?.readyState === EventSource.CLOSED) {
        reopens = setTimeout(open, Math.min(longest, pause * 2 ** failures++));
      }
    });
  };

  document.addEventListener('visibilitychange', act, { signal: ended.signal });
  renewal.rows = (...asked) => void rows(...asked).catch(() => renewal.failed());
  open();
  return () => {
    ended.abort();
    clearTimeout(waits);
    clearTimeout(reopens);
    source?.close();
  };
}
