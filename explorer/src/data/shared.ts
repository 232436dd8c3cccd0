// What a site has of an account for readers elsewhere (docs/pages.md): a page that chats preview, a badge, a card, a feed.

import { base, hasHistory, isWhole, site } from './site';
import type { Profile } from './people';

// The names that a page has in its address as they are: site/route.go has the same form.
const form = /^[a-z0-9][a-z0-9.-]{0,99}$/;

export interface Shared {
  /** The addresses of the page, and of the badge for light and for dark pages; undefined if the account has none. */
  page?: { at: string; badge: string; dark: string };
  /** The address of the script with the element for other pages. */
  embed?: string;
  /** What the element is given. */
  name: string;
  feed?: string;
}

/** What there is of an account. */
export async function shared({ address, name, followers = 0 }: Pick<Profile, 'address' | 'name' | 'followers'>): Promise<Shared> {
  const { config } = await site.root();
  const isNamed = !!config['pages'] && !!name && (await site.find(name))?.address === address;
  const least = Number(config['pages_min'] ?? 0);
  const own = isNamed && form.test(name) ? name : address;
  const at = (key: string): string => new URL(key, base).href;
  const found: Shared = { name: own };
  if (config['pages']) {
    found.embed = at('embed.js');
    if (isNamed || (least > 0 && followers >= least)) {
      found.page = { at: at(`u/${own}/index.html`), badge: at(`_badge/${own}.svg`), dark: at(`_badge/dark/${own}.svg`) };
    }
  }
  if ((await isWhole()) && (await hasHistory())) {
    found.feed = at(`${String(config['base_path'])}/users/${address}/notifications.atom`);
  }
  return found;
}

// Addresses are encoded, and of names only those of the form above are used: nothing in these needs to be escaped.

/** A badge, as HTML. */
export const badgeCode = ({ at, badge, dark }: NonNullable<Shared['page']>, says: string): string =>
  `<a href="${at}"><picture><source media="(prefers-color-scheme: dark)" srcset="${dark}"><img alt="${says}" src="${badge}"></picture></a>`;

/** A card, as HTML. */
export const cardCode = (embed: string, name: string): string =>
  `<script type="module" src="${embed}"></script> <follow-card name="${name}"></follow-card>`;
