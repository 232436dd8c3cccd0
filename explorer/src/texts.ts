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
