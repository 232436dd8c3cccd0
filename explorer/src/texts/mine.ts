// Texts about the reader's own accounts, and those of the start that load later.

import { number } from './first';
import { own } from './own';

export const mineTexts = own({
  you: 'You',
  followsYou: 'Follows you',
  youFollow: 'You follow',
  mutual: 'Mutual',
  mutualWith: 'Mutual with you',
  youBlock: 'You block',
  youMute: 'You mute',
  blocksYou: 'Blocks you',
  mutesYou: 'Mutes you',
  thisIsMe: 'This is me',
  about: 'Saved in this browser only',
  thisIsYou: 'This is you',
  meAs: (name: string) => `You: ${name}`,
  profile: 'Profile',
  forget: 'Forget',
  forgetOf: (name: string) => `Forget ${name}`,
  reading: 'Checking who you know here…',
  stranger: 'You don’t follow each other.',
  known: (n: number, more: boolean) => `Followed by ${more ? 'at least ' : ''}${n === 1 ? '1 account' : `${number(n)} accounts`} you follow`,
  knownTitle: (name: string) => `Followers of ${name} that you follow`,
  knownSome: (among: string) => `Only the newest ${among} followers were checked.`,
  knownNone: 'No one you follow follows this account.',
  nobody: 'To see this, open your own profile and choose “This is me”.',
  accounts: 'Your accounts',
  noAccounts: 'None yet. Open your profile and choose “This is me”.',
  aboutAccounts: 'Saved in this browser only.',
  viewed: 'Remember accounts I view',
  aboutViewed: 'The latest are on the home page. Saved in this browser only.',
});

export const startTexts = own({
  newFor: 'New for you',
  since: (day: string) => `Since ${day}.`,
  lately: (day: string) => `Since ${day}. From now on, you will see what is new since your last visit.`,
  firstVisit: 'On your next visit, you will see what has changed.',
  gained: (n: number, more: boolean) => `${number(n)}${more ? ' or more' : ''} new ${n === 1 ? 'follower' : 'followers'}`,
  lost: (n: number, more: boolean) => `${number(n)}${more ? ' or more' : ''} unfollowed you`,
  against: (n: number, more: boolean) => `${number(n)}${more ? ' or more' : ''} blocked or muted you`,
  others: (n: number, more: boolean) => `${number(n)}${more ? ' or more' : ''} changed how they tag you`,
  nothing: 'Nothing new.',
  counted: { followers: (then: string, now: string) => `Followers: ${now} (was ${then})`, following: (then: string, now: string) => `Following: ${now} (was ${then})` },
  allNews: 'All activity',
  yourFollowers: 'Your followers',
  switch: 'Your account',
  viewed: 'Recently viewed',
  clear: 'Clear',
  try: 'Try',
  random: 'Random account',
  more: (count: string) => `+${count}`,
  latest: 'Latest follows',
  follows: 'follows',
  ago: {
    minute: (n: string) => `${n} min`,
    hour: (n: string) => `${n} h`,
    day: (n: string) => `${n} d`,
    month: (n: string) => `${n} mo`,
    year: (n: string) => `${n} y`,
  },
  agesFrom: (day: string) => `Ages as of ${day}.`,
  top8: 'Most top 8 mentions',
  top8Of: 'top 8 mentions',
  following: 'Following the most',
  followingOf: 'followed',
});

export const yourTexts = own({
  feed: 'From accounts you follow',
  more: 'Show more',
  allSince: (day: string) => `This is everything since ${day}.`,
  quiet: (day: string) => `No activity since ${day}.`,
  nobody: 'You do not follow anyone yet.',
  suggested: 'Suggested for you',
  by: (n: number) => `Followed by ${n === 1 ? '1 account' : `${number(n)} accounts`} you follow`,
  recommended: 'Recommended by this site',
  noSuggestions: 'No suggestions yet.',
});

export const newerTexts = own({
  newer: 'New data is available. Parts of this page may already show it.',
  renew: 'Show new data',
});
