// What the reader's account and others say of each other. It is read from that account's own rows, in the background and
// within bounds, so that no request depends on whom the reader looks at, but those that every reader of a view makes.

import { mine, tell } from './mine';
import { relation, type Profile, type Related } from './people';
import { isWhole, renewal, site, type Person } from './site';

/** What is known, as bits: what the reader says of an account, and what it says of the reader. */
export const Follows = 1;
export const Blocks = 2;
export const Mutes = 4;
const theirs = 3; // bits further for what others say
export const FollowsMe = Follows << theirs;
export const BlocksMe = Blocks << theirs;
export const MutesMe = Mutes << theirs;

/** Rows that are read of each side: the newest ones. */
const most = 20_000;
const step = 1000;
/** Between two objects, so that the page has time for its reader, in milliseconds. */
const rest = 30;
/** For so long whoever looks at a profile waits for all rows, in milliseconds. Then two objects say the same of one account. */
const patience = 1000;

const inOrder = { tags: [], term: '' };

const bitsOf = ({ follows, blocks, mutes }: Pick<Related, 'follows' | 'blocks' | 'mutes'>): number =>
  (follows ? Follows : 0) | (blocks ? Blocks : 0) | (mutes ? Mutes : 0);

/** The relations of one account. */
class Known {
  readonly bits = new Map<string, number>();
  /** Whom the account follows. */
  readonly follows = new Map<string, Person>();
  /** Whether all of a side was read. */
  following = false;
  followers = false;
  readonly at = Date.now();
  readonly replaced = renewal.replaced;
  readonly turn = renewal.turn;
  /** Ends once whom the account follows is known, as far as that is read, and then who follows it. */
  readonly ready: Promise<void>;
  readonly done: Promise<void>;

  constructor(readonly me: Person) {
    this.ready = this.read('following');
    this.done = this.ready.then(() => this.read('followers'));
    // What is not known is not shown, and read again when somebody wants to know.
    this.done.catch(() => (known = this.isCurrent ? undefined : known));
  }

  get isCurrent(): boolean {
    return known === this;
  }

  private async read(kind: 'following' | 'followers'): Promise<void> {
    const token = (await isWhole()) ? '' : ((await site.find(this.me.address))?.token ?? '');
    // The order of the shards, so that each is read once.
    const { total, page } = await relation({ address: this.me.address, list: token }, kind, { ...inOrder, sort: kind === 'following' ? 'earliest' : 'latest' });
    const isCut = total > most;
    const start = kind === 'following' && isCut ? Math.ceil((total - most) / step) * step : 0;
    const end = kind === 'following' ? total : Math.min(total, most);
    for (let offset = start; offset < end && this.isCurrent; offset += step) {
      for (const row of await page(offset, Math.min(step, end - offset))) {
        if (kind === 'following' && row.follows && row.address !== this.me.address) {
          this.follows.set(row.address, row);
        }
        // Followers come with what the account says of them.
        this.bits.set(row.address, kind === 'following' ? bitsOf(row) : (bitsOf(row) << theirs) | (row.back ? bitsOf(row.back) : 0));
      }
      tell();
      await new Promise((done) => setTimeout(done, rest));
    }
    this[kind] = this.isCurrent && !isCut && (kind === 'following' || (await isWhole()));
    tell();
  }
}

let known: Known | undefined;
const calm = 60_000; // between two readings on a live site

/** Begins to read what the reader's account says, unless that is known. */
export function know(): Known | undefined {
  const { me } = mine();
  if (!me) {
    known = undefined;
  } else if (
    known?.me.address !== me.address ||
    known.replaced !== renewal.replaced ||
    (known.turn !== renewal.turn && Date.now() - known.at > calm)
  ) {
    known = undefined; // so that the one before ends
    known = new Known(me);
  }
  return known;
}

/** What is known of an account so far; with against, only who blocks or mutes whom. */
export const bitsFor = (address: string, against = false): number => (known?.bits.get(address) ?? 0) & (against ? ~(Follows | FollowsMe) : -1);

/** Whom the reader's account follows, and whether that is all of them; null if they are nobody. */
export async function followed(): Promise<{ people: ReadonlyMap<string, Person>; isAll: boolean } | null> {
  const read = know();
  await read?.ready;
  return read ? { people: read.follows, isAll: read.following } : null;
}

const shown = (state: { follow: boolean; block: boolean; mute: boolean }): number =>
  bitsOf({ follows: state.follow, blocks: state.block, mutes: state.mute });

/** The bits of an account among so many rows of another one. */
async function searched({ address, list }: Person, kind: 'following' | 'followers', wanted: string, among: number): Promise<number> {
  const { total, page } = await relation({ address, list: list ?? '' }, kind, { ...inOrder, sort: kind === 'following' ? 'earliest' : 'latest' });
  for (let offset = 0; offset < Math.min(total, among); offset += step) {
    const row = (await page(offset, Math.min(step, total - offset))).find((one) => one.address === wanted);
    if (row) {
      return bitsOf(row);
    }
  }
  return 0;
}

/** What the reader's account and another one say of each other, though not all rows were read. */
export async function relationTo(person: Profile): Promise<number> {
  const read = know();
  if (!read) {
    return 0;
  }
  await Promise.race([read.done.catch(() => undefined), new Promise((done) => setTimeout(done, patience))]);
  const bits = read.bits.get(person.address) ?? 0;
  const { address } = read.me;
  if (!(await isWhole())) {
    // There is no shorter way.
    return bits | ((await searched(person, 'following', address, most)) << theirs);
  }
  const [said, back] = await Promise.all([
    read.following
      ? 0
      : (person.followers ?? 0) <= among
        ? searched(person, 'followers', address, among) // they are read anyway; a list of so many takes long
        : site.user(person.address).followerState(address).then(({ state }) => shown(state)),
    read.followers ? 0 : site.user(address).followerState(person.address).then(({ state }) => shown(state)),
  ]);
  return bits | said | (back << theirs);
}

/** Followers of a profile that are looked at: its newest. */
export const among = 5000;

/** Whom the reader follows among the followers of an account. */
export interface Acquainted {
  people: readonly Related[];
  /** Whether there may be more. */
  more: boolean;
}

/** Looks among so many followers of an account, the newest; null if the site does not say. */
export async function acquainted({ address }: Person, looked = among): Promise<Acquainted | null> {
  const read = know();
  if (!read || !(await isWhole())) {
    return null;
  }
  await read.ready;
  const people: Related[] = [];
  const { total, page } = await relation({ address, list: '' }, 'followers', { ...inOrder, sort: 'latest' });
  for (let offset = 0; offset < Math.min(total, looked); offset += step) {
    const rows = await page(offset, Math.min(step, total - offset));
    people.push(...rows.filter((row) => row.follows && (read.bits.get(row.address) ?? 0) & Follows));
  }
  people.sort((a, b) => (b.followers ?? 0) - (a.followers ?? 0));
  return { people, more: total > looked || !read.following };
}
