// Places as addresses: nothing here needs a browser.

/** A place in the explorer: `#/a/alice.eth/followers?sort=earliest` has the path ['a', 'alice.eth', 'followers']. */
export interface Place {
  path: string[];
  query: URLSearchParams;
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment; // a percent sign that stands for itself
  }
}

// What programs put behind an address that they take from a text, or leave out of it. No address that href makes ends so.
const ends = /[.,;:!?'"()[\]{}<>*_~]+$/;

/** What was meant by a hash that was copied: chats and mails add ends of sentences, and encode what is encoded. */
function repaired(hash: string): string {
  const text = hash.replace(/^#/, '');
  return (/^%2f/i.test(text) ? decode(text) : text).replace(/&amp;/g, '&').replace(ends, '').replace(/^\//, '');
}

/** Reads a place from the hash of an address. */
export function parse(hash: string): Place {
  const [path = '', query = ''] = repaired(hash).split(/\?(.*)/s);
  return { path: path.split('/').filter(Boolean).map(decode), query: new URLSearchParams(query) };
}

declare const isHref: unique symbol;

/** Where a link may lead: a place, or what links.ts has made. Elements take no other (elements.d.ts). */
export type Href = string & { readonly [isHref]: true };

/** The address of a place, for links. Empty values of the query are left out. */
export function href(path: readonly string[], query: Record<string, string | undefined> = {}): Href {
  const pairs = Object.entries(query).filter((pair): pair is [string, string] => !!pair[1]);
  const text = new URLSearchParams(pairs).toString();
  const all = '#/' + path.map(encodeURIComponent).join('/') + (text && '?' + text);
  return all.replace(ends, (letters) => letters.replace(/./g, (letter) => '%' + letter.charCodeAt(0).toString(16))) as Href;
}

/**
 * What stays while the reader goes from tab to tab: the account or the list of the path, else the view.
 * Within it the focus and the scrolling stay as they are.
 */
export const viewOf = ({ path }: Place): string => path.slice(0, path[0] === 'a' || path[0] === 'l' ? 2 : 1).join('/');

/** Tags as a query has them: with commas between them. */
export const tagQuery = (tags: readonly string[]): string => tags.map((tag) => tag.replace(/[%,]/g, encodeURIComponent)).join(',');

/** The tags of such a query. */
export const tagsOf = (query: string): string[] =>
  query
    .split(',')
    .filter(Boolean)
    .map((tag) => tag.replace(/%2C/g, ',').replace(/%25/g, '%'));
