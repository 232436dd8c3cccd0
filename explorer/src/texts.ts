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
  asOf: (time: string) => `As of ${date(time)}`,
};
