// Texts of what a profile loads when it is asked for, or after itself: sharing, files, and names that look like others.

import { number } from './first';
import { own } from './own';

export const shareTexts = own({
  close: 'Close',
  link: 'Link to this profile',
  copyLink: 'Copy link',
  send: 'Send…',
  qr: (name: string) => `QR code of the link to ${name}`,
  elsewhere: 'On other sites',
  etherscan: 'Etherscan',
  efp: 'efp.app',
  aboutElsewhere: 'Nothing is sent to them until you open the link.',
  badge: 'Badge for your page (HTML)',
  badgeOf: (name: string) => `Followers of ${name}`,
  copyBadge: 'Copy badge code',
  embed: 'Card for your page (HTML)',
  copyEmbed: 'Copy card code',
  feed: 'Feed (Atom)',
  copyFeed: 'Copy feed link',
  card: 'Profile card',
  saveCard: 'Save as PNG',
  drawing: 'Drawing…',
  noCard: 'The card could not be drawn.',
  asJSON: 'View as JSON',
  objects: 'The data behind this page',
});

export const cardTexts = own({
  following: 'Following',
  followers: 'Followers',
  foot: (site: string, day: string) => `${site} · as of ${day}`,
});

export const exportTexts = own({
  about: (rows: string) => `Saves the accounts as filtered and sorted here, up to ${rows}.`,
  csv: 'CSV',
  json: 'JSON',
  aboutCSV: 'In CSV files, an apostrophe keeps spreadsheets from running a text as a formula.',
  progress: (rows: number, total: number | undefined) =>
    total === undefined ? `${number(rows)} accounts loaded` : `${number(rows)} of ${number(total)} accounts loaded`,
  cancel: 'Cancel',
  cancelled: 'Cancelled.',
  done: (rows: number) => (rows === 1 ? '1 account saved.' : `${number(rows)} accounts saved.`),
  cut: (rows: string) => `Saved the first ${rows} accounts. There are more.`,
  failed: (why: string) => `Could not save: ${why}`,
  moreObjects: (count: number) => (count === 1 ? 'and 1 more' : `and ${number(count)} more`),
});

export const identityTexts = own({
  looksLike: 'Looks like',
  bracketed: (address: string) => `(${address})`,
  looksAbout: ', which has more followers. Check the address.',
  compare: '. Compare the addresses.',
  spells: 'The name is written like an address, but it is not the address of this account.',
  ticked: 'Anyone can put a check mark into a name. It does not mean that the account is verified.',
  mixed: (scripts: string) => `The name mixes letters from different alphabets: ${scripts}.`,
  other: 'other',
});
