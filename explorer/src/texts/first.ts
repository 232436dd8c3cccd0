// The texts of the first view, and how numbers and times are written. All texts that the explorer shows are in this
// folder, for translators. They are in several files because the first view is small: the others load after it, with
// what shows them.

import type { Text } from '../text';
import { own, shown } from './own';

const numbers = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' });
const days = new Intl.DateTimeFormat('en', { month: 'short', day: 'numeric', timeZone: 'UTC' });
const months = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
const percents = new Intl.NumberFormat('en', { style: 'percent', maximumFractionDigits: 1 });

const formatted = (format: Intl.DateTimeFormat, time: string | number): string => {
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime()) ? '' : format.format(parsed);
};

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

// What the operator says of the site. Without a document these are only tested.
const said = (name: string): string | undefined => globalThis.document?.querySelector<HTMLMetaElement>(`meta[name="${name}"]`)?.content;
const name = said('followpress-title');
const title = name ?? 'followpress';

export const texts = own({
  title,
  loading: 'Loading…',
  failed: 'This could not be loaded.',
  refused: 'This could not be verified, so it is not shown.',
  proof: 'Proof',
  retry: 'Try again',
  missing: 'There is no page at this address.',
  home: 'Home',
  boards: 'Leaderboards',
  network: 'Network',
  reports: 'Reports',
  api: 'API',
  navigation: 'Main',
  welcome: name ?? 'Explore the follow graph',
  what: said('description') ?? '',
  asOf: (day: string) => `As of ${day}.`,
  can: 'Search for an account to see its followers, the accounts it follows and how it ranks.',
  sizesTitle: 'At a glance',
  figures: { accounts: 'Accounts', lists: 'Lists', follows: 'Follows', names: 'Names' },
  mostFollowed: 'Most followed',
  allBoards: 'All leaderboards',
  skip: 'Skip to content',
  settings: 'Settings',
  mayOthers: 'Load pictures? Other sites will see your IP address.',
  load: 'Load',
  leave: 'No',
  search: 'Search accounts and lists',
  key: '/',
  searchFor: 'Name, address or list number',
  found: 'Search results',
  results: (n: number) => (n === 0 ? 'No matches yet' : n === 1 ? '1 result' : `${number(n)} results`),
  searchMore: (typed: string) => `See all results for “${typed}”`,
  ticked: 'Check mark in name',
  list: (token: string) => `List ${token}`,
  followers: 'followers',
  followersOf: (n: number) => (n === 1 ? '1 follower' : `${number(n)} followers`),
  offline: 'The site cannot be reached. This is a saved copy and may be out of date.',
  about: 'This page is put together in your browser from this site’s public data.',
  more: 'About followpress',
  sizes: (accounts: string, lists: string, follows: string) => `${accounts} accounts, ${lists} lists, ${follows} follows`,
  live: (time: string) => `Live, as of ${time}`,
  notLive: (time: string) => `As of ${time}`,
  renewed: (time: string) => `Updated, as of ${time}`,
  foot: (day: string, sizes: string) => `As of ${day} · ${sizes}`,
  blank: '\u00a0',
  wide: '\u2007',
  titled: (name: string) => `${name} · ${title}`,
});
