// All texts that the explorer shows, in one place for translators.

const numbers = new Intl.NumberFormat('en');
const dates = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeZone: 'UTC' });

export const number = (n: number): string => numbers.format(n);
export const date = (time: string | number): string => {
  const parsed = new Date(time);
  return Number.isNaN(parsed.getTime()) ? '' : dates.format(parsed);
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
