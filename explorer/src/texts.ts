// All texts that the explorer shows, in one place for translators.

const numbers = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' });

export const number = (n: number): string => numbers.format(n);
export const date = (time: string | number): string => {
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime()) ? '' : dates.format(parsed);
};

const months = new Intl.DateTimeFormat('en', { month: 'long', year: 'numeric', timeZone: 'UTC' });
export const month = (time: string | number): string => {
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime()) ? '' : months.format(parsed);
};

export const texts = {
  title: 'followpress',
  loading: 'Loading…',
  failed: 'This could not be read.',
  retry: 'Try again',
  missing: 'There is nothing here.',
  home: 'Start',
  boards: 'Leaderboards',
  network: 'Network',
  reports: 'Reports',
  api: 'API',
  navigation: 'Views',
  welcome: 'Explore the follow graph',
  skip: 'Skip to content',
  settings: 'Settings',
  theme: 'Colours',
  themes: { auto: 'Auto', light: 'Light', dark: 'Dark' },
  pictures: 'Show pictures',
  aboutPictures: 'Pictures are loaded from the hosts that profiles name. Without them, your browser asks nobody but this site.',
  about: 'A follow graph as files: this page is made in your browser, from the objects of this site.',
  more: 'About followpress',
  sizes: (accounts: string, lists: string, follows: string) => `${accounts} accounts, ${lists} lists, ${follows} follows`,
  asOf: (time: string) => `As of ${date(time)}`,
};

export const rowsTexts = {
  gone: 'No longer there',
};

export const boardTexts = {
  title: 'Leaderboards',
  none: 'This site has no such leaderboard.',
  nobody: 'Nobody is on this leaderboard.',
  place: 'Place',
  account: 'Account',
  find: 'Find place',
  user: 'Name or address',
  most: 'Most first',
  fewest: 'Fewest first',
  notThere: (user: string) => `${user} is not on this leaderboard.`,
  all: (total: string) => `${total} accounts.`,
  first: (total: string) => `The first ${total} accounts.`,
  names: {
    followers: 'Followers',
    following: 'Following',
    mutuals: 'Mutuals',
    top8: 'Top 8',
    blocks: 'Blocks',
    blocked: 'Blocked',
    mutes: 'Mutes',
    muted: 'Muted',
  },
  titles: {
    followers: 'Most followers',
    following: 'Most following',
    mutuals: 'Most mutuals',
    top8: 'Most in top 8',
    blocks: 'Most blocks',
    blocked: 'Most blocked',
    mutes: 'Most mutes',
    muted: 'Most muted',
  },
  about: {
    followers: 'How many accounts follow the account.',
    following: 'How many accounts the account follows.',
    mutuals: 'How many of those whom the account follows follow it too.',
    top8: 'How many accounts have the account in their top 8.',
    blocks: 'How many accounts the account blocks.',
    blocked: 'How many accounts block the account.',
    mutes: 'How many accounts the account mutes.',
    muted: 'How many accounts mute the account.',
  },
};

export const chartTexts = {
  table: 'As a table',
};

export const networkTexts = {
  title: 'The network',
  figures: [
    ['accounts', 'Accounts'],
    ['names', 'Names'],
    ['lists', 'Lists'],
    ['primary_lists', 'Primary lists'],
    ['records', 'Records'],
    ['follows', 'Follows'],
  ],
  followers: 'Followers of accounts',
  aboutFollowers: 'How many accounts have how many followers; both scales are logarithmic.',
  unitFollowers: 'Followers',
  following: 'Accounts that lists follow',
  aboutFollowing: 'How many accounts follow how many; both scales are logarithmic.',
  unitFollowing: 'Following',
  spread: (total: string, half: string, most: string) => `${total} accounts, half of them at most ${half}, the largest ${most}.`,
  exactly: 'Accounts with exactly that',
  atLeast: 'with at least that',
  accounts: 'Accounts',
  growth: 'Growth',
  aboutGrowth: 'Records of primary lists by the month in which they were added.',
  month: 'Month',
  records: 'Records',
  tags: 'Tags',
  tag: 'Tag',
  aboutTags: 'How many records of primary lists have a tag.',
  more: (total: string) => `Show all ${total}`,
  fewer: 'Show fewer',
} as const;
