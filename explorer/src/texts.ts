// All texts that the explorer shows, in two places for translators: those of the first view are here, those of views that
// load later in latertexts.ts.

import type { Text } from './text';

// What is written here may be shown. A text that becomes a part of it may be shown itself.
type Own<T> = T extends string
  ? Text
  : T extends (...parts: infer Parts) => string
    ? (...parts: { [I in keyof Parts]: string extends Parts[I] ? Text : Parts[I] }) => Text
    : { readonly [Name in keyof T]: Own<T[Name]> };
/** Texts that may be shown: those of these two files only. */
export const own = <T>(all: T): Own<T> => all as Own<T>;

const numbers = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' });
const days = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const months = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const percents = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

const formatted = (format: Intl.DateTimeFormat, time: string | number): string => {
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime()) ? '' : format.format(parsed);
};

/** A function whose results may be shown, whatever it is given. */
export const shown = <Given extends unknown[]>(format: (...given: Given) => string) => format as (...given: Given) => Text;

export const number = shown((n: number) => numbers.format(n));
/** The number of followers in a row of what a list holds, which is rounded from 100 on. */
export const roughly = shown((n: number) => (n < 100 ? '' : '≈ ') + numbers.format(n));
// Rounded down: nobody has more than 100 %.
export const percent = shown((part: number) => percents.format(Math.floor(part * 1000) / 1000));
/** These three are '' for what is no time. */
export const date = shown((time: string | number) => formatted(dates, time));
export const day = shown((time: string | number) => formatted(days, time));
/** In the reader's time zone: with the day, unless it is today. */
export const moment = shown((time: string | number) => {
  const then = new Date(time);
  return then.toLocaleString('en', { ...(then.toDateString() !== new Date().toDateString() && { dateStyle: 'medium' }), timeStyle: 'medium' });
});
export const month = shown((time: string | number) => formatted(months, time));
export const range = shown((from: Text, to: Text) => (from === to ? from : `${from}–${to}`));
/** Sentences, one after the other. */
export const sentences = shown((...all: (Text | '' | false)[]) => all.filter(Boolean).join(' '));

// What the operator calls the site. Without a document these are only tested.
const title = globalThis.document?.querySelector<HTMLMetaElement>('meta[name="followpress-title"]')?.content ?? 'followpress';

export const texts = own({
  title,
  loading: 'Loading…',
  failed: 'This could not be read.',
  refused: 'This could not be checked, so it is not shown.',
  proof: 'Proof',
  retry: 'Try again',
  missing: 'There is nothing here.',
  home: 'Start',
  boards: 'Leaderboards',
  network: 'Network',
  reports: 'Reports',
  api: 'API',
  navigation: 'Views',
  welcome: 'Explore the follow graph',
  what: 'Who follows whom, from the lists that accounts keep on chain. Search for an account, see whom it follows and who follows it, and how it compares with all others.',
  sizesTitle: 'Sizes',
  figures: { accounts: 'Accounts', lists: 'Lists', follows: 'Follows', names: 'Names' },
  mostFollowed: 'Most followed',
  latestFollows: 'Latest follows',
  allBoards: 'All leaderboards',
  skip: 'Skip to content',
  settings: 'Settings',
  mayOthers: 'Profiles here have pictures on other hosts, which would see your network address.',
  load: 'Load them',
  leave: 'Do without',
  search: 'Search accounts and lists',
  key: '/',
  searchFor: 'Name, address or list number',
  found: 'Found',
  results: (n: number) => (n === 0 ? 'Nothing found so far' : n === 1 ? '1 result' : `${number(n)} results`),
  searchAll: (typed: string) => `Search “${typed}” in all ranked accounts`,
  searchMore: (typed: string) => `All results for “${typed}”`,
  list: (token: string) => `List ${token}`,
  followers: 'followers',
  searchTitle: (typed: string) => `Search: ${typed}`,
  searchNothing: 'Type a name, an address or the number of a list into the search box.',
  matchesTop: (total: string) => `Among the ${total} most followed accounts`,
  matchesAll: 'Among all accounts with a rank',
  matchesExact: 'Exactly this',
  foundNothing: (typed: string) => `Nothing is found for “${typed}”.`,
  offline: 'The site cannot be reached. This is what you have seen before; it may have changed since.',
  about: 'A follow graph as files: this page is made in your browser, from the objects of this site.',
  more: 'About followpress',
  sizes: (accounts: string, lists: string, follows: string) => `${accounts} accounts, ${lists} lists, ${follows} follows`,
  live: (time: string) => `live, as of ${time}`,
  notLive: (time: string) => `as of ${time}`,
  renewed: (time: string) => `Renewed, as of ${time}`,
  foot: (day: string, sizes: string) => `As of ${day} · ${sizes}`,
  blank: '\u00a0',
  wide: '\u2007',
  titled: (name: string) => `${name} · ${title}`,
});

export const rowsTexts = own({
  gone: 'No longer there',
});

export const peopleTexts = own({
  tabs: 'Of this account',
  profile: 'Profile',
  following: 'Following',
  followers: 'Followers',
  common: 'In common',
  graph: 'Neighbourhood',
  activity: 'Activity',
  then: 'As of',
  nobody: 'No such account',
  aboutNobody: (user: string) => `Nobody has the name ${user} here.`,
  noList: 'No such list',
  aboutNoList: (token: string) => `There is no list ${token} here.`,
  bare: 'This account has no profile and no list here.',
  unknownAddress: 'Address unknown: the account has no list.',
  copy: 'Copy address',
  copied: 'Copied',
  notCopied: 'Select the address to copy it.',
  about: 'About',
  records: (count: string) => `All texts of the profile (${count})`,
  chains: (count: string) => `Addresses on chains (${count})`,
  keys: {
    name: 'Name',
    url: 'Website',
    email: 'Mail',
    location: 'Place',
    keywords: 'Keywords',
    'com.twitter': 'X',
    'com.github': 'GitHub',
    'com.discord': 'Discord',
    'org.telegram': 'Telegram',
    'xyz.farcaster': 'Farcaster',
  },
  showAll: (length: string) => `Show all ${length} characters`,
  showLess: 'Show less',
  ranks: 'Place in the graph',
  moreOf: (count: string) => `+${count}`,
  between: ' · ',
  rank: (place: string) => `No. ${place}`,
  boards: { followers: 'Followers', following: 'Following', mutuals: 'Mutuals', top8: 'Top 8', blocked: 'Blocked' },
  below: {
    followers: (percent: string, accounts: string) => `More followers than ${percent} of the ${accounts} accounts that have any`,
    following: (percent: string, accounts: string) => `Follows more than ${percent} of the ${accounts} accounts that follow any`,
  },
  bin: (from: string, to: string, accounts: string) => (from === to ? `${from}: ${accounts} accounts` : `${from} to ${to}: ${accounts} accounts`),
  lists: 'Lists',
  list: (token: string) => `List ${token}`,
  primary: 'Primary list',
  notPrimary: 'Not a primary list',
  aboutPrimary: 'What the account says is in this list.',
  aboutNotPrimary: 'The list belongs to the account, but does not count as what it says.',
  notItsPrimary: (token: string) => `Its primary list is ${token}.`,
  noPrimary: 'The account has no primary list.',
  owner: 'Account',
  entries: 'Entries',
  given: 'Tags it gives',
  received: 'Tags it receives',
  noTags: 'None',
  badges: (count: string) => `Badges (${count})`,
  find: 'Name or address',
  sort: 'Order',
  sorts: { latest: 'Latest first', earliest: 'Earliest first', followers: 'Most followers' },
  byTag: 'Tags',
  moreTags: (count: string) => `${count} more tags`,
  clear: 'Clear filters',
  count: (n: number) => (n === 1 ? '1 account' : `${number(n)} accounts`),
  found: (found: string, total: string) => `${found} of ${total} accounts`,
  some: (total: string) => `Some of ${total} accounts`,
  none: { following: 'Follows nobody.', followers: 'Nobody follows this account.' },
  searching: 'Searching…',
  noneFound: 'No account fits.',
  unknownFollowers: 'This site does not say who follows an account.',
  blocked: 'Blocked',
  muted: 'Muted',
  blocks: 'Blocks it',
  mutes: 'Mutes it',
  mutual: 'Mutual',
  followersOf: (n: number, isRounded: boolean) => (n === 1 ? '1 follower' : `${isRounded ? roughly(n) : number(n)} followers`),
  since: (day: string) => `since ${day}`,
});
