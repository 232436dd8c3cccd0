// The only place where a text of a profile becomes a URL.

/** The URL that a text is, if it has one of the schemes; undefined if it is not to be used. */
function url(text: string, schemes: readonly string[]): string | undefined {
  try {
    const { protocol, href } = new URL(text.trim());
    return schemes.includes(protocol) ? href : undefined;
  } catch {
    return undefined; // a text
  }
}

/** Where a link to this text leads; undefined for anything but the web and mail, which stays a text. */
export const link = (text: string): string | undefined => url(text, ['https:', 'http:', 'mailto:']);

/** What every link out of the explorer has. */
export const outside = { target: '_blank', rel: 'noopener noreferrer nofollow' } as const;

const inline = /^\s*data:image\//i;

/** Whether a picture is part of its own URL, so that showing it asks no other host. */
export const isInline = (text: string): boolean => inline.test(text);

/** The URL of a picture; undefined for what is neither on the web nor a picture in a text. */
export const picture = (text: string): string | undefined => (isInline(text) ? text.trim() : url(text, ['https:']));

// Where the accounts of profiles are, and what their names are made of.
const homes = new Map<string, [form: RegExp, home: string]>(Object.entries({
  'com.twitter': [/^@?(\w{1,15})$/, 'https://x.com/'],
  'com.github': [/^@?([\w-]{1,39})$/, 'https://github.com/'],
  'org.telegram': [/^@?(\w{4,32})$/, 'https://t.me/'],
  'xyz.farcaster': [/^@?([\w.-]{1,64})$/, 'https://farcaster.xyz/'],
  email: [/^(?:mailto:)?([^\s@<>?&%,;:]{1,64}@[\w.-]{1,190})$/i, 'mailto:'],
}));

/** Where a text with this key leads; undefined for most. */
export function linkOf(key: string, text: string): string | undefined {
  const [form, home] = homes.get(key) ?? [];
  const name = form && text.trim().match(form)?.[1];
  if (name && home) {
    return home + name;
  }
  const isDomain = key === 'url' && /^(?!\w+:)[\w-]+(\.[\w-]+)+(\/\S*)?$/.test(text.trim());
  return link(isDomain ? 'https://' + text.trim() : text);
}
