// Texts of views that load later, which the first view does without.

import { number } from './first';
import { own, shown } from './own';

export const settingTexts = own({
  theme: 'Colours',
  themes: { auto: 'Auto', light: 'Light', dark: 'Dark' },
  pictures: 'Show pictures',
  aboutPictures: 'Pictures of profiles, drawn anew and without motion. Without them, your browser asks nobody but this site.',
  others: 'Pictures of other hosts',
  aboutOthers: 'They are loaded from the hosts that profiles name, which see your network address.',
  shortcuts: 'Keyboard shortcut',
  aboutShortcuts: 'The key / goes to the search box.',
});

export const sealTexts = own({
  live: 'Live: answered from memory, and not signed.',
  none: 'Not checked by this browser.',
  incapable: 'Not checked: this browser cannot check signatures.',
  waiting: 'Checking…',
  good: (origin: string, asOf: string, objects: string, n: number) =>
    `Signed by ${origin}, as of ${asOf}. Checked by this browser: ${n === 1 ? '1 object' : `${objects} objects`}.`,
  blocks: (all: string) => `block ${all}`,
  block: (block: string, chain: string) => `${block} (chain ${chain})`,
  bySite: 'The key was given by this site itself.',
  changed: 'This site now names other keys than before.',
  altered: (objects: string, n: number) =>
    n === 1 ? 'Altered: 1 object is not what was signed, and is not shown.' : `Altered: ${objects} objects are not what was signed, and are not shown.`,
  older: 'Older than what this browser has seen of this site, so it is not shown.',
  ahead: 'Signed with a counter more than a day ahead of your clock, so it is not shown: the clock is wrong, or the key was stolen.',
  unsigned: 'Not signed by a key that this browser knows, so it is not shown.',
  between: 'Between two sites: another one is being published.',
  unsupported: 'This browser cannot check signatures by your key, so nothing is shown.',
});

export const proofTexts = own({
  title: 'Proof',
  about: 'Is this what its publisher has signed? With a public key, your browser checks each object before it shows anything made from it.',
  signed: 'What was signed',
  facts: {
    origin: 'Signed by',
    counter: 'Version',
    asOf: 'As of',
    digest: 'SHA-256 of _site',
    generator: 'Made by followpress',
    objects: 'Checked objects',
  },
  time: (day: string, time: string) => `${day} (${time})`,
  chains: 'Blocks',
  chain: 'Chain',
  block: 'Block',
  hash: 'Hash',
  noHash: '–',
  noChains: 'The site does not say up to which blocks it goes.',
  refused: 'What is not believed',
  more: (count: string) => `and ${count} more`,
  claims: (origin: string) => `The site has a signature in the name of ${origin}, which nobody has checked here: a key is missing.`,
  claimsNothing: 'The site is not signed.',
  keys: 'Keys',
  by: {
    reader: 'You have given these keys to this browser. It keeps them for this site.',
    site: 'This site itself has named these keys. That proves little: whoever alters the site could name others. Your browser has kept those that it saw first. Better get the key from its publisher in another way, and enter it here.',
    nobody: 'This browser knows no key of this site. Get one from its publisher, but not from this site.',
  },
  kept: 'First seen by this browser',
  now: 'Named by the site now',
  trust: 'Trust those that it names now',
  field: 'Public keys of the publisher',
  help: 'One or several, as followpress key prints them: NAME+1a2b3c4d+…',
  wrong: 'That is no public key. Use what followpress key has printed: NAME+1a2b3c4d+…',
  check: 'Check with these',
  forget: 'Forget all keys',
  refreshers: 'Public keys of servers that refresh (optional)',
  aboutRefreshers: 'A server may replace profiles and badges between two versions of the site. With its key, they are believed.',
  limits: 'What is not checked',
  limitsOf: [
    'This page: its program comes from the same site. Who can alter the site can alter what this page says. Commands below do not depend on it, nor does a page with your own copy (npm) of the client library or Subresource Integrity.',
    'Profiles and badges: they are what services said at a time. That they were signed does not make them true.',
    'Pictures, which come from other hosts, and reports, which are made after the signature.',
    'Whether others are shown the same site, and whether the publisher tells the truth about the chains: the commands below check that.',
  ],
  profiles: (source: string) => `Profiles are from ${source}.`,
  commands: 'Check it yourself',
  commandsOf: {
    verify: 'Is everything in the bucket what was signed?',
    reproduce: 'Is the site what its inputs make?',
    audit: 'Do lists agree with the contracts?',
  },
  yourKey: 'KEY',
  copy: 'Copy the command',
});

export const commonTexts = own({
  title: (one: string, other: string) => `${one} and ${other}`,
  compare: 'Compare with…',
  compareAbout: 'Whom do two accounts both follow, and who follows both? Choose the other one.',
  another: 'Another account',
  suggestions: 'Or one of these',
  /** Between two accounts. */
  states: { follows: ' follows ', blocks: ' blocks ', mutes: ' mutes ', nothing: ' does not follow ' },
  bothFollow: 'Both follow',
  followBoth: 'Follow both',
  noneCommon: 'None.',
  same: 'That is the same account.',
});

export const boardTexts = own({
  title: 'Leaderboards',
  none: 'This site has no such leaderboard.',
  nobody: 'Nobody is on this leaderboard.',
  place: 'Place',
  account: 'Account',
  find: 'Find place',
  more: 'More',
  notThere: (user: string) => `${user} is not on this leaderboard.`,
  all: (total: string) => `${total} accounts.`,
  first: (total: string) => `The first ${total} accounts.`,
  sorted: (name: string) => `${name} ↓`,
  nothing: '–',
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
    mutuals: 'How many of those whom the account follows follow back.',
    top8: 'How many accounts have the account in their top 8.',
    blocks: 'How many accounts the account blocks.',
    blocked: 'How many accounts block the account.',
    mutes: 'How many accounts the account mutes.',
    muted: 'How many accounts mute the account.',
  },
});

export const chartTexts = own({
  nothing: '–',
  label: (title: string, about: string) => `${title}. ${about}`,
  table: 'As a table',
});

export const networkTexts = own({
  title: 'The network',
  figures: { accounts: 'Accounts', names: 'Names', lists: 'Lists', primary_lists: 'Primary lists', records: 'Records', follows: 'Follows' },
  degrees: {
    followers: {
      title: 'Followers of accounts',
      about: 'How many accounts have how many followers; both scales are logarithmic.',
      unit: 'Followers',
      atLeast: (n: number, least: string) => (n === 1 ? `1 account has at least ${least} followers.` : `${number(n)} accounts have at least ${least} followers.`),
    },
    following: {
      title: 'Accounts that lists follow',
      about: 'How many accounts follow how many; both scales are logarithmic.',
      unit: 'Following',
      atLeast: (n: number, least: string) => (n === 1 ? `1 account follows at least ${least}.` : `${number(n)} accounts follow at least ${least}.`),
    },
  },
  spread: (total: string, half: string, most: string) => `${total} accounts, half of them at most ${half}, the largest ${most}.`,
  press: 'A point leads to the accounts that it stands for.',
  exactly: 'Accounts with exactly so many',
  atLeast: 'Accounts with at least so many',
  accounts: 'Accounts',
  growth: 'Growth',
  aboutGrowth: 'Records of primary lists by the month in which they were added.',
  month: 'Month',
  records: 'Records',
  tags: 'Tags',
  tag: 'Tag',
  aboutTags: 'How many records of primary lists have a tag.',
  pressTag: 'Each leads to who was given it.',
  tagged: (tag: string, most: string) => `Who was given “${tag}”, of the ${most} most followed`,
  givenBy: (n: number) => (n === 1 ? 'by 1 account' : `by ${number(n)} accounts`),
  nobodyTagged: 'None of them.',
  close: 'Close',
  more: (total: string) => `Show all ${total}`,
  fewer: 'Show fewer',
  reports: 'Reports: what changed from day to day',
  files: 'The graph as files, for queries of your own',
});

export const graphTexts = own({
  role: 'graph',
  label: (count: string) => `${count} accounts and who of them follows whom.`,
  keys: 'Arrow keys go from account to account, Enter shows what one can do there, plus and minus zoom, 0 shows all.',
  help: 'Choose an account to see whom it follows here. Drag accounts, zoom with Ctrl (⌘) and the wheel or with two fingers, and double-click to walk on. Accounts of one colour have many in common.',
  scrolls: { wheel: 'Hold Ctrl (⌘) to zoom with the wheel.', finger: 'Move the picture with two fingers.' },
  size: (shown: string, left?: string) => (left ? `The ${shown} with the most followers; ${left} more are followed, and left out.` : `${shown} accounts are followed.`),
  reading: 'Reading who follows whom…',
  follows: (count: string) => `${count} follows among these accounts.`,
  partly: (count: string) => `${count} follows among these accounts; some lists could not be read.`,
  nobody: 'Follows nobody.',
  plus: '+',
  minus: '−',
  larger: 'Zoom in',
  smaller: 'Zoom out',
  fit: 'Show all',
  colours: 'Colours: who has many in common',
  andOthers: (count: string) => `and ${count} more`,
  alone: 'in none of these',
  followers: (count: string) => `${count} followers`,
  followsHere: (count: string) => `follows ${count} here`,
  followedHere: (count: string) => `followed by ${count} here`,
  profile: 'Profile',
  walk: 'Walk here',
  list: 'All accounts in the picture',
});

export const reportTexts = own({
  title: 'Reports',
  about: 'What changed from one site to the next.',
  unsigned: 'Nobody has signed these reports, so this browser has not checked them.',
  none: 'There are no reports yet.',
  how: 'Whoever runs this site makes them after each publish, with:',
  command: 'followpress report --publish',
  chart: 'Follows and unfollows',
  aboutChart: (count: string) => `New and ended follows of the last ${count} reports, by the date of the report.`,
  date: 'Report',
  between: 'From – to',
  span: (from: string, to: string) => `${from} – ${to}`,
  nothing: '–',
  follows: 'Follows',
  unfollows: 'Unfollows',
  newLists: 'New lists',
  goneLists: 'Gone lists',
  more: (total: string) => `Show all ${total}`,
  fewer: 'Show fewer',
});

const times = new Intl.DateTimeFormat('en', { timeStyle: 'short', timeZone: 'UTC' });
const minutes = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short', timeZone: 'UTC' });
const ages = new Intl.RelativeTimeFormat('en');

/** How long ago something was, by what has passed in milliseconds: less than nothing is now. */
export function ageOf(passed: number): string {
  const minutesAgo = Math.floor(passed / 60_000);
  return !(minutesAgo > 0) ? 'just now'
    : minutesAgo < 60 ? ages.format(-minutesAgo, 'minute')
    : minutesAgo < 48 * 60 ? ages.format(-Math.floor(minutesAgo / 60), 'hour')
    : ages.format(-Math.floor(minutesAgo / 1440), 'day');
}

export const actTexts = {
  ...own({
    title: 'Activity',
    latest: 'Latest activity',
    counted: (time: string) => `Ages count back from ${time}, the state of this site.`,
    allOf: (count: string) => `Show all ${count}`,
    fewer: 'Show fewer',
    unknown: 'This site does not say what happened.',
    nothing: 'Nothing has happened in this time.',
    noneFits: 'Nothing of that kind in what was read.',
    sides: { by: (name: string) => `By ${name}`, to: () => 'By others' },
    did: { follow: 'followed', unfollow: 'unfollowed', tag: 'tagged', untag: 'untagged' },
    filter: 'Only',
    kinds: { follow: 'Follows', unfollow: 'Unfollows', tag: 'Tags', untag: 'Tags taken away' },
    period: (from: string, to: string) => `The site says what happened from ${from} to ${to}. Lists count that are primary now.`,
    reading: 'Reading…',
    count: (shown: string, fitting: string, total: string) => (fitting === total ? `${shown} of ${total}` : `${shown} of ${fitting}, among ${total} in all`),
    countOf: (shown: string, fitting: string, read: string, total: string) => `${shown} of ${fitting}, among the newest ${read} of ${total}`,
    older: 'Show older',
  }),
  ago: shown(ageOf),
  time: shown((time: number) => times.format(time)),
  minute: shown((time: number) => `${minutes.format(time)} UTC`),
};

export const thenTexts = own({
  title: 'As of',
  unknown: 'This site does not say what happened.',
  day: 'At the end of',
  days: (first: string, last: string) => `From ${first} to ${last}, in UTC.`,
  tooEarly: (first: string) => `The site says what happened since ${first} only.`,
  report: (from: string, to: string) => `What changed in the whole site from ${from} to ${to}`,
  noReport: 'There is no report of that time.',
  earlier: 'Earlier days that have a report',
  cut: (count: string, day: string) => `So much has happened since that only the newest ${count} operations are undone. This is the end of ${day}, the earliest day that is shown.`,
  mixed: 'The lists and what happened are of two states of this site, so that numbers may be wrong. Load the page again in some minutes.',
  about: 'What was added and removed since is undone, by the lists that are primary now. Tags are not: accounts that are blocked or muted count too.',
  which: 'Accounts',
  then: 'Then',
  now: 'Now',
  all: 'All then',
  came: 'Came since',
  left: 'Left since',
  nobody: { all: 'Nobody then.', came: 'Nobody came since.', left: 'Nobody left since.' },
  tooMany: (most: string) => `More than ${most} accounts: only those who came or left are listed.`,
  cameOn: (day: string) => `came ${day}`,
  leftOn: (day: string) => `left ${day}`,
});

export const growthTexts = own({
  title: 'Growth',
  about: (follows: string, unfollows: string, day: string) => `${follows} new and ${unfollows} ended follows by primary lists since ${day}. Blocks and mutes are follows with a tag here.`,
  by: 'Steps',
  steps: { day: 'By day', week: 'By week', month: 'By month' },
  begins: { day: 'Day', week: 'Week from', month: 'Month' },
  newest: (count: string) => `The newest ${count} are here.`,
});
