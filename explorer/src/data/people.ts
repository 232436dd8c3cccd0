// Accounts and lists: profiles, badges, tags, and who follows whom.

import { ApiError, type Badge, type Details, type HeldRow, type HolderRow, type RowsPage } from '@followpress/client';
import { distributionOf, type Distribution } from './distribution';
import { Block, Follow, Mute, stateOf } from './rules';
import { hasHistory, isAddress, isWhole, network, once, site, top, type Person } from './site';

/** What is known about an account. */
export interface Profile extends Person {
  /** "" for a name of which the site does not know whose it is. */
  address: string;
  header: string;
  description: string;
  /** The texts of the profile except those that are members: [key, text], in the order of the profile. */
  texts: [string, string][];
  /** Its addresses on chains. */
  chains: [string, string][];
  /** The primary list, "" for none. */
  list: string;
  /** Its other lists; a site of the specification does not know them. */
  lists: readonly string[];
  /** How many there are, if that is known. */
  followers?: number;
  following?: number;
  /** Places on leaderboards, from 1. */
  ranks: [RankedBoard, number][];
  /** Whether the site has all leaderboards, or those of the specification only. */
  whole: boolean;
  /** Whether the site says what happened lately. */
  history?: boolean;
  /** Whether the site knows nothing but the address or the name. */
  bare: boolean;
}

// Leaderboards that profiles have ranks of, with their names in the API.
const ranked = {
  followers: 'followers',
  following: 'following',
  mutuals: 'mutuals',
  top8: 'top8',
  blocked: 'blocks',
} as const;
export type RankedBoard = keyof typeof ranked;
const rankedBoards = Object.keys(ranked) as RankedBoard[];

/** A text of a profile, which anybody may have written: texts are shown, anything else as JSON. */
export const text = (value: unknown): string =>
  typeof value === 'string' ? value : value === null || value === undefined ? '' : (JSON.stringify(value) ?? '');

const members = (value: unknown): [string, string][] =>
  value && typeof value === 'object'
    ? Object.entries(value)
        .map(([name, member]): [string, string] => [name, text(member)])
        .filter(([, member]) => member.trim())
    : [];

/** What is shown elsewhere on a profile than in its list of texts. */
const shown = new Set(['description', 'avatar', 'header']);

function known(details: Details): Omit<Profile, 'lists'> {
  const { address, ens, ranks, primary_list } = details;
  const texts = members(ens?.records);
  return {
    address,
    name: text(ens?.name),
    avatar: text(ens?.avatar),
    header: text(ens?.header),
    description: texts.find(([key]) => key === 'description')?.[1] ?? '',
    texts: texts.filter(([key]) => !shown.has(key)),
    chains: members(ens?.chains),
    list: primary_list ?? '',
    ranks: rankedBoards
      .map((board): [RankedBoard, number] => [board, Number(ranks?.[`${ranked[board]}_rank`])])
      .filter(([, rank]) => rank > 0),
    whole: false,
    bare: false,
  };
}

const bare = (person: Partial<Profile>): Profile => ({
  address: '',
  name: '',
  avatar: '',
  header: '',
  description: '',
  texts: [],
  chains: [],
  list: '',
  lists: [],
  ranks: [],
  whole: false,
  bare: true,
  ...person,
});

/** The profile of an account, by its address or name; null for a name that nobody has. */
export async function profile(user: string): Promise<Profile | null> {
  if (await isWhole()) {
    // To ask for the objects of a name that nobody has would be an error on the console.
    const account = isAddress(user) ? { address: user } : await site.find(user);
    if (!account) {
      return null;
    }
    const asked = site.user(account.address);
    const [details, { followers_count, following_count }, { lists }] = await Promise.all([
      asked.details(),
      asked.stats(),
      asked.lists(),
    ]);
    const found = known(details);
    return {
      ...found,
      whole: true,
      history: await hasHistory(),
      followers: followers_count,
      following: following_count,
      lists: lists.filter((token) => token !== found.list),
      bare: !found.name && !lists.length && !followers_count,
    };
  }
  // Without followers, what is known about them is in the object of the most followed.
  const [found, { people }] = await Promise.all([site.find(user), top()]);
  if (!found) {
    return null;
  }
  const name = found.address ? '' : user.toLowerCase();
  const row = people.find((person) => (name ? person.name.toLowerCase() === name : person.address === found.address));
  const followers = row?.followers === undefined ? {} : { followers: row.followers };
  if (!found.token) {
    return bare({ address: found.address, name, ...row });
  }
  const list = site.list(found.token);
  const oldest = list.rows('following', { limit: 1, sort: 'earliest' });
  const [details, { total }] = await Promise.all([list.details(), oldest]);
  return { ...known(details), ...followers, following: total, lists: [] };
}

/** Whose a list is. */
export interface ListOf {
  token: string;
  owner: Profile;
  isPrimary: boolean;
}

/** A list by its token ID; null if there is none. */
export async function listOf(token: string): Promise<ListOf | null> {
  try {
    const details = await site.list(token).details();
    return { token, owner: { ...known(details), lists: [] }, isPrimary: details.primary_list === token };
  } catch (error) {
    if (error instanceof ApiError && (error.status === 404 || error.status === 400)) {
      return null;
    }
    throw error;
  }
}

/** A badge that its owner has. */
export interface Event {
  id: string;
  name: string;
  place: string;
  date: string;
  url: string;
  image: string;
}

function event({ eventId, participated, collection }: Badge): Event[] {
  if (!participated || !collection?.event) {
    return [];
  }
  const { name, city, country, start_date, year, event_url, image_url } = collection.event;
  const place = [text(city), text(country)].filter(Boolean).join(', ');
  const date = text(start_date) || text(year);
  return [{ id: text(eventId), name: text(name), place, date, url: text(event_url), image: text(image_url) }];
}

/** The badges of an account. */
export async function badges({ address, list }: Profile): Promise<Event[]> {
  const whole = await isWhole();
  if (!whole && !list) {
    return [];
  }
  const answer = await (whole ? site.user(address) : site.list(list)).badges();
  return Object.values(answer).flat().flatMap(event);
}

/** Tags with how often they are used, the most used first. */
export type Tags = readonly { tag: string; count: number }[];

const byCount = (tags: Tags): Tags =>
  tags.filter(({ tag }) => tag).sort((a, b) => b.count - a.count || (a.tag < b.tag ? -1 : 1));

/** How many of the most followed accounts are asked for who gave them a tag. */
export const askedForTag = 50;

/** Who of the most followed accounts was given a tag most often, of a site with the whole API. */
export async function taggedMost(tag: string): Promise<[Person, number][]> {
  const { people } = await top();
  const all = await Promise.all(
    people.slice(0, askedForTag).map(async (person): Promise<[Person, number]> => {
      const { tagCounts } = await site.user(person.address).taggedAs();
      return [person, tagCounts.find((one) => one.tag === tag)?.count ?? 0];
    }),
  );
  return all.filter(([, count]) => count > 0).sort((a, b) => b[1] - a[1]);
}

/** What lists say by tags: by those that mean something, and of those who are followed by all others. */
export interface Said {
  free: Tags;
  /** Who is blocked and who is muted; some are both, so that out counts those who are not followed. */
  blocks: number;
  mutes: number;
  out: number;
  /** Addresses of those who are followed with the tag top8. */
  top8: readonly string[];
}

/** Tags that mean something by themselves. */
export const meaningful = ['block', 'mute', 'top8'];

function saidBy(tagged: readonly { address: string; tag: string }[]): Said {
  const those = (tag: string) => tagged.filter((pair) => pair.tag === tag).map(({ address }) => address);
  const [blocked, muted] = [those('block'), those('mute')];
  const out = new Set([...blocked, ...muted]);
  const counts = new Map<string, number>();
  for (const { address, tag } of tagged) {
    if (!out.has(address) && !meaningful.includes(tag)) {
      counts.set(tag, (counts.get(tag) ?? 0) + 1);
    }
  }
  return {
    free: byCount([...counts].map(([tag, count]) => ({ tag, count }))),
    blocks: blocked.length,
    mutes: muted.length,
    out: out.size,
    top8: those('top8').filter((address) => !out.has(address)),
  };
}

/** What an account says by tags, and what is said of it; a site of the specification does not know that. */
export async function tagsOf(address: string): Promise<{ given: Said; received: Said } | null> {
  if (!(await isWhole())) {
    return null;
  }
  const user = site.user(address);
  const [given, received] = await Promise.all([user.tags(), user.taggedAs()]);
  return { given: saidBy(given.taggedAddresses), received: saidBy(received.taggedAddresses) };
}

const shownTop = 8;

/** The accounts that an account has put first, in the order of its list. */
export async function topEight(subject: Subject): Promise<readonly Person[]> {
  const said = await tagsOf(subject.address);
  if (!said) {
    return (await relation(subject, 'following', { sort: 'earliest', tags: ['top8'], term: '' })).page(0, shownTop);
  }
  const { people } = said.given.top8.length ? await top() : { people: [] };
  const person = async (address: string): Promise<Person> => {
    const known = people.find((one) => one.address === address);
    const { ens } = known ? { ens: null } : await site.user(address).account();
    return known ?? { address, name: text(ens?.name), avatar: text(ens?.avatar) };
  };
  return Promise.all(said.given.top8.slice(0, shownTop).map(person));
}

/* Following and followers */

export type Kind = 'following' | 'followers';
export const isKind = (word: string): word is Kind => word === 'following' || word === 'followers';
export const sorts = ['latest', 'earliest', 'followers'] as const;
export type Sort = (typeof sorts)[number];

/** An account that a list has, or whose list has the account. */
export interface Related extends Person {
  tags: readonly string[];
  follows: boolean;
  blocks: boolean;
  mutes: boolean;
  /** When it was added, in milliseconds; 0 if that is not known. */
  added: number;
  /** Of a follower: what the account says of it. */
  back?: { follows: boolean; blocks: boolean; mutes: boolean };
}

const said = (state: number) => ({ follows: !!(state & Follow), blocks: !!(state & Block), mutes: !!(state & Mute) });

function related(row: Row): Related {
  const { address, name, avatar, tags, followers } = row;
  return {
    address,
    name: text(name),
    avatar: text(avatar),
    ...(followers === undefined ? {} : { followers }),
    tags: tags.filter((tag) => said(stateOf([tag])).follows),
    ...said(stateOf(tags)),
    added: 'added' in row ? row.added : 0,
    ...('state' in row ? { back: said(row.state) } : {}),
  };
}

/** Which accounts are wanted, and in which order. */
export interface Wanted {
  sort: Sort;
  tags: readonly string[];
  term: string;
  /** Only those of whom this is said; all by default. */
  show?: Show;
}

/** What lists say of accounts that they hold. */
export const shows = ['follows', 'blocks', 'mutes', 'all'] as const;
export type Show = (typeof shows)[number];

/** Accounts by pages. */
export interface Relation {
  /** How many there are in all. */
  total: number;
  /** How many of them are shown without tags and term, if that is known. */
  shown: number | undefined;
  /** How many of them are wanted, if that is known. */
  found: number | undefined;
  /** Whether there are rows that say when they were added. */
  dated: boolean;
  page(offset: number, limit: number): Promise<readonly Related[]>;
}

/** The subject of a relation: an account by its address, or a list. */
export interface Subject {
  address: string;
  list: string;
  /** Whether only this list is meant, and not the account that it is of. */
  isList?: boolean;
}

const nothing: Relation = { total: 0, shown: 0, found: 0, dated: false, page: () => Promise.resolve([]) };
/** Up to this many are filtered at once, so that it is known how many are found. */
const few = 10_000;
const first = 100;

type Row = HeldRow | HolderRow;
type Read = (page: RowsPage) => Promise<{ total: number; rows: Row[] }>;

// reader reads rows of a subject; a site of the specification has them for lists only.
async function reader({ address, list, isList }: Subject, kind: Kind): Promise<Read | null> {
  const whole = await isWhole();
  if (!whole && (!list || kind === 'followers')) {
    return null;
  }
  const subject = whole && !isList ? site.user(address) : site.list(list);
  return (page) => subject.rows(kind, page);
}

const shardSize = 1000;
const atOnce = 6;

/**
 * Reads shards side by side while a search goes on, which reads one after the other, since it ends once a page
 * is full.
 */
function readAhead(read: Read, sort: Sort, total: number, search: Promise<unknown>): void {
  let offset = shardSize; // the search begins with the first one
  const stop = () => {
    offset = total;
  };
  search.then(stop, stop);
  const next = async () => {
    while (offset < total) {
      const wanted = { sort, offset, limit: 1 };
      offset += shardSize;
      await read(wanted).catch(stop); // the search fails by itself
    }
  };
  for (let i = 0; i < atOnce; i++) {
    void next();
  }
}

async function search(read: Read, page: RowsPage, sort: Sort): Promise<{ total: number; rows: Row[] }> {
  const { total } = await read({ sort, limit: 1 });
  const searching = read(page);
  readAhead(read, sort, total, searching);
  return searching;
}

/** What rows are asked for by: who is blocked or muted has a tag, who is followed has none. */
const asked = ({ sort, tags, term, show = 'all' }: Wanted): RowsPage => ({
  sort,
  term,
  tags: show === 'blocks' ? ['block'] : show === 'mutes' ? ['mute'] : tags,
  follows: show === 'follows',
});

/** How many a subject follows, or follow it; undefined where a site has rows of nobody else. */
async function followsOf({ address, list, isList }: Subject, kind: Kind): Promise<number | undefined> {
  if (!(await isWhole())) {
    return undefined;
  }
  const { following_count, followers_count } = await (isList ? site.list(list) : site.user(address)).stats();
  return kind === 'following' ? following_count : followers_count;
}

/** Whom an account or a list follows, or who follows it; those who are blocked and muted too, unless only some are wanted. */
export async function relation(subject: Subject, kind: Kind, wanted: Wanted): Promise<Relation> {
  const read = await reader(subject, kind);
  if (!read) {
    return nothing;
  }
  const { sort } = wanted;
  const [follows, { total }] = await Promise.all([wanted.show === 'follows' ? followsOf(subject, kind) : undefined, read({ sort, limit: first })]);
  // Where all are followed, any page is read without those before it.
  const isAll = wanted.show === 'follows' && (follows ?? total) === total;
  const rowsWanted = asked(isAll ? { ...wanted, show: 'all' } : wanted);
  const isPart = !!rowsWanted.term || !!rowsWanted.tags?.length;
  const isFiltered = isPart || !!rowsWanted.follows;
  // The order by followers takes all shards anyway, side by side.
  const takesAll = sort === 'followers' || (isFiltered && total <= few);
  // The first follows are in an object of their own, and the next ones in the first shard.
  const isSearch = ({ offset = 0, limit = 0 }: RowsPage) => isFiltered && sort !== 'followers' && (isPart || offset + limit > shardSize / 2);
  const readSome = async (page: RowsPage) => (await (isSearch(page) ? search(read, page, sort) : read(page))).rows;
  const all = once(() => readSome({ ...rowsWanted, limit: Infinity }));
  const rows = isFiltered && sort === 'followers' ? await all() : await readSome({ ...rowsWanted, limit: first });
  const page = async (offset: number, limit: number) => {
    if (rows.length < first || offset + limit <= rows.length) {
      return rows.slice(offset, offset + limit).map(related);
    }
    return (takesAll ? (await all()).slice(offset, offset + limit) : await readSome({ ...rowsWanted, offset, limit })).map(related);
  };
  const found = rows.length < first ? rows.length : !isFiltered ? total : !isPart ? follows : takesAll ? (await all()).length : undefined;
  const { show = 'all' } = wanted;
  // Of rows in another order the first ones may be without.
  const isDated = (some: readonly Row[]) => some.some((row) => 'added' in row && row.added > 0);
  const dated = isDated(rows) || (total > 0 && isDated((await read({ sort: 'latest', limit: first })).rows));
  return { total, shown: show === 'all' ? total : show === 'follows' ? (follows ?? total) : undefined, found, dated, page };
}

/** What one can choose among in a relation; a site of the specification knows nobody who is blocked or muted. */
export async function saidOf(subject: Subject, kind: Kind): Promise<Said> {
  if (await isWhole()) {
    const asked = subject.isList ? site.list(subject.list) : site.user(subject.address);
    return saidBy((await (kind === 'following' ? asked.tags() : asked.taggedAs())).taggedAddresses);
  }
  if (kind === 'followers') {
    return saidBy([]);
  }
  const { rows, total } = await site.list(subject.list).rows('following', { limit: few });
  return saidBy(total > few ? [] : rows.flatMap(({ address, tags }) => tags.map((tag) => ({ address, tag }))));
}

/* What two accounts have in common */

/** What an account says of another one. */
export type State = 'follows' | 'blocks' | 'mutes' | 'nothing';

export interface Common {
  /** What the first says of the second, and the second of the first. */
  states: [State, State];
  bothFollow: readonly Related[];
}

const everything: RowsPage = { sort: 'followers', limit: Infinity };

async function rowsOf(subject: Subject, kind: Kind): Promise<Related[]> {
  const read = await reader(subject, kind);
  return read ? (await read(everything)).rows.map(related) : [];
}

function wordFor(rows: readonly Related[], { address }: Subject): State {
  const row = rows.find((held) => held.address === address);
  return !row ? 'nothing' : row.blocks ? 'blocks' : row.mutes ? 'mutes' : 'follows';
}

function both(a: readonly Related[], b: readonly Related[]): Related[] {
  const others = new Set(b.filter((row) => row.follows).map(({ address }) => address));
  return a.filter((row) => row.follows && others.has(row.address)).map(({ address, name, avatar, followers }) => ({
    address,
    name,
    avatar,
    ...(followers === undefined ? {} : { followers }),
    tags: [],
    follows: true,
    blocks: false,
    mutes: false,
    added: 0,
  }));
}

/** Whom two accounts both follow, and what they say of each other. */
export async function common(a: Subject, b: Subject): Promise<Common> {
  const [ofA, ofB] = await Promise.all([rowsOf(a, 'following'), rowsOf(b, 'following')]);
  return { states: [wordFor(ofA, b), wordFor(ofB, a)], bothFollow: both(ofA, ofB) };
}

/** Who follows two accounts; null if the site does not know. */
export async function followBoth(a: Subject, b: Subject): Promise<readonly Related[] | null> {
  if (!(await isWhole())) {
    return null;
  }
  const [ofA, ofB] = await Promise.all([rowsOf(a, 'followers'), rowsOf(b, 'followers')]);
  return both(ofA, ofB);
}

/** Where a count is among those of all accounts. */
export async function distribution(kind: Kind, count: number): Promise<Distribution | null> {
  return distributionOf((await network())[kind], count);
}
