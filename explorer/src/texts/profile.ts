// Texts of what a profile loads when it is asked for, or after itself: sharing, files, and names that look like others.

import { number } from './first';
import { own } from './own';

export const shareTexts = own({
  close: 'Close',
  link: 'Link to this profile',
  copyLink: 'Copy link',
  send: 'Send…',
  qr: (name: string) => `QR code of the link to ${name}`,
  elsewhere: 'Elsewhere',
  etherscan: 'Etherscan',
  efp: 'efp.app',
  aboutElsewhere: 'They are asked for nothing until you open them.',
  card: 'Picture of the profile',
  saveCard: 'Save as PNG',
  drawing: 'Drawing…',
  noCard: 'The picture could not be drawn.',
  asJSON: 'View as JSON',
  objects: 'The objects that this page is made from',
});

export const cardTexts = own({
  following: 'Following',
  followers: 'Followers',
  foot: (site: string, day: string) => `${site} · as of ${day}`,
});

export const exportTexts = own({
  about: (rows: string) => `The accounts as they are filtered and sorted here, up to ${rows}.`,
  csv: 'CSV',
  json: 'JSON',
  aboutCSV: 'In CSV, what a spreadsheet would take for a formula begins with an apostrophe.',
  progress: (rows: number, total: number | undefined) =>
    total === undefined ? `${number(rows)} accounts read` : `${number(rows)} of ${number(total)} accounts read`,
  cancel: 'Cancel',
  cancelled: 'Cancelled.',
  done: (rows: number) => (rows === 1 ? '1 account is saved.' : `${number(rows)} accounts are saved.`),
  cut: (rows: string) => `The first ${rows} accounts are saved; there are more.`,
  failed: (why: string) => `Not saved: ${why}`,
  moreObjects: (count: number) => (count === 1 ? 'and 1 more' : `and ${number(count)} more`),
});

export const identityTexts = own({
  looksLike: 'Looks like',
  bracketed: (address: string) => `(${address})`,
  looksAbout: ', which has more followers. Compare the addresses.',
  mixed: (scripts: string) => `The name mixes letters of several scripts: ${scripts}.`,
  other: 'another one',
});
