// The only place where a text of a profile becomes a link.

import type { Href } from '../place';
import { plain, type Text } from '../text';

/** A link out of the explorer. */
export interface Link {
  to: Href;
  /** Where it leads: for the web the host as browsers ask for it, in ASCII. */
  text: Text;
  /** The rest of the address. */
  rest: Text | '';
}

const longestRest = 80;
const mailbox = /^[\w.+'-]{1,64}@[\w-]+(\.[\w-]+)+$/;

// What would be read as another address than the one that is opened: white space and what is not seen, credentials,
// and backslashes, which browsers take for slashes.
const isMisleading = (text: string): boolean => /[\s\p{C}\\]/u.test(text) || plain(text) !== text || /^[a-z]+:\/*[^/?#]*@/i.test(text);

/** Where a text leads; undefined for anything but the web and mail, which stays a text. */
export function link(text: string): Link | undefined {
  const trimmed = text.trim();
  const [, mail] = trimmed.match(/^mailto:(.*)$/i) ?? [];
  if (mail !== undefined) {
    return mailbox.test(mail) ? { to: `mailto:${mail}` as Href, text: plain(mail), rest: '' } : undefined;
  }
  if (isMisleading(trimmed)) {
    return undefined;
  }
  try {
    const { protocol, href, host, pathname, search, hash, username, password } = new URL(trimmed);
    if ((protocol !== 'https:' && protocol !== 'http:') || !host || username || password) {
      return undefined;
    }
    const rest = pathname === '/' && !search && !hash ? '' : pathname + search + hash;
    const short = rest.length > longestRest ? rest.slice(0, longestRest) + '…' : rest;
    return { to: href as Href, text: plain(host), rest: plain(short) };
  } catch {
    return undefined; // a text
  }
}

/** The address of an object of this site, below its base. Keys are made by data/objects.ts. */
export const objectLink = (base: string, key: string): Href => new URL(key.split('/').map(encodeURIComponent).join('/'), base).href as Href;

/** What every link out of the explorer has. */
export const outside = { target: '_blank', rel: 'noopener noreferrer nofollow' } as const;

// Where the accounts of profiles are, and what their names are made of.
const homes = new Map<string, [form: RegExp, home: string]>(Object.entries({
  'com.twitter': [/^@?(\w{1,15})$/, 'https://x.com/'],
  'com.github': [/^@?([\w-]{1,39})$/, 'https://github.com/'],
  'org.telegram': [/^@?(\w{4,32})$/, 'https://t.me/'],
  'xyz.farcaster': [/^@?([\w.-]{1,64})$/, 'https://farcaster.xyz/'],
  email: [/^(?:mailto:)?([^@]*@[^@]*)$/i, 'mailto:'],
}));

/** Where a text with this key leads; undefined for most. The text of a link to an account is the account's name. */
export function linkOf(key: string, text: string): Link | undefined {
  const trimmed = text.trim();
  const [form, home = ''] = homes.get(key) ?? [];
  const name = form && trimmed.match(form)?.[1];
  if (name) {
    const found = link(home + name);
    return found && (home === 'mailto:' ? found : { ...found, text: plain(trimmed), rest: '' });
  }
  const isDomain = key === 'url' && /^(?!\w+:)[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(trimmed);
  return link(isDomain ? 'https://' + trimmed : trimmed);
}
