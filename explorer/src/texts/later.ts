// Texts of views that load later, which the first view does without.

import { number } from './first';
import { own, shown } from './own';

export const settingTexts = own({
  theme: 'Colours',
  themes: { auto: 'Auto', light: 'Light', dark: 'Dark' },
  pictures: 'Show pictures',
  aboutPictures: 'Profile pictures, without animation. When this is off, your browser contacts only this site.',
  others: 'Pictures from other sites',
  aboutOthers: 'The sites that host them will see your IP address.',
  shortcuts: 'Keyboard shortcut',
  aboutShortcuts: 'Press / to go to the search box.',
});

export const sealTexts = own({
  live: 'Live data, not signed.',
  none: 'Not verified.',
  incapable: 'Not verified: this browser cannot check signatures.',
  waiting: 'Checking…',
  good: (origin: string, asOf: string, objects: string, n: number) =>
    `Signed by ${origin}, as of ${asOf}. Verified by this browser: ${n === 1 ? '1 file' : `${objects} files`}.`,
  blocks: (all: string) => `block ${all}`,
  block: (block: string, chain: string) => `${block} (chain ${chain})`,
  bySite: 'The key came from this site itself.',
  changed: 'This site now names different keys than before.',
  altered: (objects: string, n: number) =>
    n === 1 ? 'Altered: 1 file differs from what was signed, and is not shown.' : `Altered: ${objects} files differ from what was signed, and are not shown.`,
  older: 'Older than a version this browser has already seen, so it is not shown.',
  ahead: 'Signed more than a day ahead of your clock, so it is not shown. Either a clock is wrong or the key was stolen.',
  unsigned: 'Not signed with a key this browser knows, so it is not shown.',
  between: 'A new version is being published.',
  unsupported: 'This browser cannot check signatures made with your key, so nothing is shown.',
});

export const proofTexts = own({
  title: 'Proof',
  about: 'Is this what the publisher signed? With a public key, your browser checks every file before it shows anything from it.',
  signed: 'What was signed',
  facts: {
    origin: 'Signed by',
    counter: 'Version',
    asOf: 'As of',
    digest: 'SHA-256 of _site',
    generator: 'followpress version',
    objects: 'Files verified',
  },
  time: (day: string, time: string) => `${day} (${time})`,
  chains: 'Blocks',
  chain: 'Chain',
  block: 'Block',
  hash: 'Hash',
  noHash: '–',
  noChains: 'The site does not name the blocks that it covers.',
  refused: 'Failed checks',
  more: (count: string) => `and ${count} more`,
  claims: (origin: string) => `The site is signed in the name of ${origin}, but this browser has no key to verify that.`,
  claimsNothing: 'This site is not signed.',
  look: 'Look for a signature',
  keys: 'Keys',
  by: {
    reader: 'You entered these keys. This browser keeps them for this site.',
    site: 'These keys came from the site itself. That proves little: anyone who can change the site can change the keys. Your browser kept the first ones it saw. It is safer to get the key from the publisher some other way and enter it here.',
    nobody: 'This browser has no key for this site. Get one from the publisher, but not from this site.',
  },
  kept: 'First seen by this browser',
  now: 'Now named by the site',
  trust: 'Trust the new keys',
  field: 'Publisher’s public keys',
  help: 'One or more, as printed by followpress key: NAME+1a2b3c4d+…',
  wrong: 'That is not a public key. Paste what followpress key printed: NAME+1a2b3c4d+…',
  check: 'Check with these keys',
  forget: 'Forget all keys',
  refreshers: 'Public keys of refresh servers (optional)',
  aboutRefreshers: 'A server may update profiles and badges between two versions of the site. With its key, those updates are trusted.',
  limits: 'What is not checked',
  limitsOf: [
    'This page itself: its code comes from the same site, so anyone who can change the site can change what this page says. The commands below do not depend on it. Nor does a page of your own that uses your copy (npm) of the client library, or Subresource Integrity.',
    'Profiles and badges: they are what other services said at the time. A signature does not make them true.',
    'Pictures, which come from other sites, and reports, which are made after signing.',
    'Whether everyone sees the same site, and whether the publisher tells the truth about the chains. The commands below check that.',
  ],
  profiles: (source: string) => `Profiles come from ${source}.`,
  commands: 'Check it yourself',
  commandsOf: {
    verify: 'Does the bucket hold exactly what was signed?',
    reproduce: 'Do the inputs produce this very site?',
    audit: 'Do the lists match the contracts?',
  },
  yourKey: 'KEY',
  copy: 'Copy command',
});

export const commonTexts = own({
  title: (one: string, other: string) => `${one} and ${other}`,
  compare: 'Compare with…',
  compareAbout: 'See who both accounts follow, and who follows them both.',
  another: 'Change account',
  suggestions: 'Suggestions',
  /** Between two accounts. */
  states: { follows: ' follows ', blocks: ' blocks ', mutes: ' mutes ', nothing: ' does not follow ' },
  bothFollow: 'Followed by both',
  followBoth: 'Followers of both',
  noneCommon: 'No accounts in common.',
  same: 'That is the same account.',
});

export const searchTexts = own({
  title: (typed: string) => `Search: ${typed}`,
  nothing: 'Type a name, an address or a list number into the search box.',
  none: (typed: string) => `No results for “${typed}”`,
  found: (total: number, isPart: boolean) => `${isPart ? 'At least ' : ''}${number(total)} ${total === 1 ? 'result' : 'results'}`,
  first: (shown: string, total: string, isPart: boolean) => `First ${shown} of ${isPart ? 'at least ' : ''}${total}`,
  most: (most: string) => `among the ${most} most followed accounts`,
  read: (read: string, all: string) => `among ${read} of ${all} accounts`,
  more: 'Show more',
  all: 'Search all accounts',
  stop: 'Stop',
});

export const boardTexts = own({
  title: 'Leaderboards',
  none: 'This site does not have that leaderboard.',
  nobody: 'No one is on this leaderboard yet.',
  place: 'Rank',
  account: 'Account',
  find: 'Find account',
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
    followers: 'Most followed',
    following: 'Following the most',
    mutuals: 'Most mutuals',
    top8: 'Most top 8 mentions',
    blocks: 'Blocking the most',
    blocked: 'Most blocked',
    mutes: 'Muting the most',
    muted: 'Most muted',
  },
  about: {
    followers: 'Ranked by number of followers.',
    following: 'Ranked by how many accounts they follow.',
    mutuals: 'Ranked by how many accounts they follow that follow them back.',
    top8: 'Ranked by how many accounts have them in their top 8.',
    blocks: 'Ranked by how many accounts they block.',
    blocked: 'Ranked by how many accounts block them.',
    mutes: 'Ranked by how many accounts they mute.',
    muted: 'Ranked by how many accounts mute them.',
  },
});

export const chartTexts = own({
  nothing: '–',
  label: (title: string, about: string) => `${title}. ${about}`,
  table: 'As a table',
});

export const networkTexts = own({
  title: 'Network',
  figures: { accounts: 'Accounts', names: 'Names', lists: 'Lists', primary_lists: 'Primary lists', records: 'Entries', follows: 'Follows' },
  degrees: {
    followers: {
      title: 'Followers per account',
      about: 'How many accounts have a given number of followers. Both scales are logarithmic.',
      unit: 'Followers',
      atLeast: (n: number, least: string) => (n === 1 ? `1 account has at least ${least} followers.` : `${number(n)} accounts have at least ${least} followers.`),
    },
    following: {
      title: 'Follows per account',
      about: 'How many accounts follow a given number of others. Both scales are logarithmic.',
      unit: 'Following',
      atLeast: (n: number, least: string) => (n === 1 ? `1 account follows at least ${least} others.` : `${number(n)} accounts follow at least ${least} others.`),
    },
  },
  spread: (total: string, half: string, most: string) => `${total} accounts. Half have at most ${half}; the highest is ${most}.`,
  press: 'Select a point to see the accounts.',
  exactly: 'Accounts with exactly this many',
  atLeast: 'Accounts with at least this many',
  accounts: 'Accounts',
  growth: 'Growth',
  aboutGrowth: 'Entries in primary lists, by the month they were added.',
  month: 'Month',
  records: 'Entries',
  tags: 'Tags',
  tag: 'Tag',
  aboutTags: 'How many entries in primary lists have each tag.',
  pressTag: 'Select a tag to see who was given it.',
  tagged: (tag: string, most: string) => `Tagged “${tag}”, among the ${most} most followed`,
  givenBy: (n: number) => (n === 1 ? 'by 1 account' : `by ${number(n)} accounts`),
  nobodyTagged: 'None of them.',
  close: 'Close',
  more: (total: string) => `Show all ${total}`,
  fewer: 'Show fewer',
  files: 'Download the graph for your own queries',
});

export const graphTexts = own({
  role: 'graph',
  label: (count: string) => `Graph of ${count} accounts and who follows whom.`,
  keys: 'Use the arrow keys to move between accounts, Enter for options, plus and minus to zoom, and 0 to show all.',
  help: 'Select an account to see who it follows here. Drag accounts to move them. Zoom with Ctrl (⌘) and the wheel, or with two fingers. Double-click to explore from an account. Accounts of the same colour have many connections in common.',
  scrolls: { wheel: 'Hold Ctrl (⌘) and scroll to zoom.', finger: 'Use two fingers to move the graph.' },
  size: (shown: string, left?: string) => (left ? `The ${shown} most followed accounts it follows; ${left} more are left out.` : `Follows ${shown} ${shown === '1' ? 'account' : 'accounts'}.`),
  reading: 'Loading connections…',
  follows: (count: string) => `${count} follows between these accounts.`,
  partly: (count: string) => `${count} follows between these accounts. Some lists could not be loaded.`,
  nobody: 'Not following anyone.',
  plus: '+',
  minus: '−',
  larger: 'Zoom in',
  smaller: 'Zoom out',
  fit: 'Show all',
  colours: 'Groups with many connections in common',
  andOthers: (count: string) => `and ${count} more`,
  alone: 'in no group',
  followers: (count: string) => `${count} followers`,
  followsHere: (count: string) => `follows ${count} here`,
  followedHere: (count: string) => `followed by ${count} here`,
  profile: 'Profile',
  walk: 'Explore from here',
  list: 'All accounts in the graph',
});

export const reportTexts = own({
  title: 'Reports',
  about: 'What changed between versions of this site.',
  unsigned: 'Reports are not signed, so this browser has not verified them.',
  none: 'No reports yet.',
  chart: 'Follows and unfollows',
  aboutChart: (count: string) => `New follows and unfollows in the last ${count} reports, by date.`,
  date: 'Report',
  between: 'Period',
  span: (from: string, to: string) => `${from} – ${to}`,
  nothing: '–',
  follows: 'Follows',
  unfollows: 'Unfollows',
  newLists: 'New lists',
  goneLists: 'Removed lists',
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
    counted: (time: string) => `Ages as of ${time}.`,
    allOf: (count: string) => `Show all ${count}`,
    fewer: 'Show fewer',
    unknown: 'This site has no activity data.',
    nothing: 'No activity in this period.',
    noneFits: 'No matching activity so far.',
    sides: { by: (name: string) => `By ${name}`, to: () => 'By others' },
    did: { follow: 'followed', unfollow: 'unfollowed', tag: 'tagged', untag: 'untagged' },
    filter: 'Filter',
    kinds: { follow: 'Follows', unfollow: 'Unfollows', tag: 'Tags added', untag: 'Tags removed' },
    period: (from: string, to: string) => `From ${from} to ${to}. Only lists that are primary now count.`,
    reading: 'Loading…',
    count: (shown: string, fitting: string, total: string) => (fitting === total ? `${shown} of ${total}` : `${shown} of ${fitting} matches, ${total} in total`),
    countOf: (shown: string, fitting: string, read: string, total: string) => `${shown} of ${fitting} matches in the newest ${read} of ${total}`,
    older: 'Show older',
  }),
  ago: shown(ageOf),
  time: shown((time: number) => times.format(time)),
  minute: shown((time: number) => `${minutes.format(time)} UTC`),
};

export const thenTexts = own({
  title: 'On a date',
  unknown: 'This site has no activity data.',
  day: 'End of day',
  days: (first: string, last: string) => `Any day from ${first} to ${last}, in UTC.`,
  tooEarly: (first: string) => `Activity on this site only goes back to ${first}.`,
  report: (from: string, to: string) => `What changed across the site from ${from} to ${to}`,
  noReport: 'No report covers that time.',
  earlier: 'Earlier days with a report',
  cut: (count: string, day: string) => `Too much has happened since to go back that far: only the newest ${count} changes can be undone. This is the end of ${day}, the earliest day available.`,
  mixed: 'The site was updated while this page loaded, so numbers may be wrong. Reload the page in a few minutes.',
  about: 'Worked out by undoing what today’s primary lists added and removed since. Tags are not undone, so blocked and muted accounts count too.',
  which: 'Accounts',
  then: 'Then',
  now: 'Now',
  all: 'All on that day',
  came: 'Added since',
  left: 'Removed since',
  nobody: { all: 'No one on that day.', came: 'No one added since.', left: 'No one removed since.' },
  tooMany: (most: string) => `More than ${most} accounts, so only those added or removed are listed.`,
  cameOn: (day: string) => `added ${day}`,
  leftOn: (day: string) => `removed ${day}`,
});

export const growthTexts = own({
  title: 'Growth',
  about: (follows: string, unfollows: string, day: string) => `${follows} new follows and ${unfollows} unfollows by primary lists since ${day}. Blocks and mutes count as follows here.`,
  by: 'Group by',
  steps: { day: 'By day', week: 'By week', month: 'By month' },
  begins: { day: 'Day', week: 'Week of', month: 'Month' },
  newest: (count: string) => `Showing the newest ${count}.`,
});
