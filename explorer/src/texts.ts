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
  what: 'Who follows whom, from the lists that accounts keep on chain. Search for an account, see whom it follows and who follows it, and how it compares with all others.',
  sizesTitle: 'Sizes',
  figures: { accounts: 'Accounts', lists: 'Lists', follows: 'Follows', names: 'Names' },
  mostFollowed: 'Most followed',
  latestFollows: 'Latest follows',
  allBoards: 'All leaderboards',
  skip: 'Skip to content',
  settings: 'Settings',
  theme: 'Colours',
  themes: { auto: 'Auto', light: 'Light', dark: 'Dark' },
  pictures: 'Show pictures',
  aboutPictures: 'Pictures are loaded from the hosts that profiles name. Without them, your browser asks nobody but this site.',
  shortcuts: 'Keyboard shortcut',
  aboutShortcuts: 'The key / goes to the search box.',
  search: 'Search accounts and lists',
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
  asOf: (time: string) => `As of ${date(time)}`,
};

export const rowsTexts = {
  gone: 'No longer there',
};
