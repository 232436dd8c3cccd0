// What needs no browser, run in node by TestUnits. Throws for a promise that is not kept.

import { better, entriesOf, find, fold, marked, termOf } from '../src/data/match';
import type { Person } from '../src/data/site';
import { isFollow, stateOf } from '../src/data/rules';
import { placeOf, tens } from '../src/data/degrees';
import { distributionOf } from '../src/data/distribution';
import { href, parse, tagQuery, tagsOf, viewOf } from '../src/place';
import { bytesOf, formatOf, isInline, mostInline } from '../src/pictures/format';
import { boundsOf } from '../src/graph/layout';
import type { Node } from '../src/graph/model';
import { link, linkOf } from '../src/ui/links';
import { keysOf } from '../src/ui/pages';
import { clip, named, plain } from '../src/text';

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

// The same numbers in every run.
let seed = 20260101;
function below(n: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >> 8) % n;
}
const word = (letters: readonly string[], most: number): string =>
  Array.from({ length: below(most + 1) }, () => letters[below(letters.length)]).join('');

const letters = ['a', 'b', 'B', '.', '-', '_', '1', 'é', 'e\u0301', 'x\u0301', 'ß', 'İ', 'م', '😀', '👩\u200d👧', '🇩🇪', '0x', '.eth'];
const person = (name: string): Person => ({
  address: '0x' + Array.from({ length: 40 }, () => below(16).toString(16)).join(''), name, avatar: '', followers: below(4),
});
const found = (people: readonly Person[], term: string): Person[] => find(entriesOf(people), term).sort(better).map(({ person }) => person);

/** How well a text is found, by its definition. */
function naiveRank(text: string, term: string): number {
  const found = Array.from({ length: text.length }, (_, i) => i).filter((i) => text.slice(i).startsWith(term));
  return text === term || (text === term + '.eth' && !term.includes('.')) ? 0
    : text.startsWith(term) ? 1
    : found.some((i) => i > 0 && !/[\p{L}\p{N}\p{M}\p{Cs}]/u.test(text.charAt(i - 1))) ? 2
    : found.length ? 3
    : 4;
}

/** Whether a place in a text is within what is seen as one letter. */
const isCut = (text: string, at: number): boolean =>
  at > 0 && (/^[\p{M}\u200d\udc00-\udfff]/u.test(text.slice(at)) || /[\u200d]$/.test(text.slice(0, at)) || /^(\p{RI}{2})*\p{RI}$/u.test(text.slice(0, at).match(/\p{RI}*$/u)?.[0] ?? '') && /^\p{RI}/u.test(text.slice(at)));

for (let round = 0; round < 300; round++) {
  const people = Array.from({ length: below(60) }, () => person(word(letters, 8)));
  const typed = below(4) ? word(letters, 3) : (people[below(people.length || 1)]?.address.slice(below(5), 5 + below(36)) ?? '');
  const term = termOf(typed);
  const rank = ({ name, address }: Person) => Math.min(naiveRank(fold(name), term), term.length < 3 ? 4 : naiveRank(address, term));
  const order = (a: Person, b: Person) => rank(a) - rank(b) || (b.followers ?? 0) - (a.followers ?? 0) || (a.address < b.address ? -1 : 1);
  const want = term ? people.filter((p) => rank(p) < 4).sort(order) : [];
  same(`find ${JSON.stringify(typed)}`, found(people, term), want);
  for (const { name } of want) {
    const at = marked(name, term);
    same(`whether ${JSON.stringify(term)} is marked in ${JSON.stringify(name)}`, !!at, fold(name).includes(term));
    // Whole letters are marked, as they are seen: none is cut, and without the first or the last one the term is not there.
    if (at && (!fold(name.slice(...at)).includes(term) || at.some((i) => isCut(name, i)))) {
      throw new Error(`marked ${JSON.stringify(name)}: got ${JSON.stringify(name.slice(...at))}, want ${JSON.stringify(term)} in whole letters`);
    }
  }
}
same('what is marked', ['Straße', 'x\u0301y', 'a👩\u200d👧b', '🇩🇪🇫🇷', '<b>bold</b>', 'a\ud83d', 'oliv', 'kate-bob.bob'].map((name, i) => {
  const at = marked(name, ['ss', 'x', '👩', '🇫', 'b>', '\ud83d', 'liv.', 'bob'][i] ?? '');
  return at && name.slice(...at);
}), [null, 'x\u0301', '👩\u200d👧', '🇫🇷', 'b>', '\ud83d', null, 'bob'].map((text) => text ?? undefined));

const order = ['bob.eth', 'bobby.eth', 'kate.bob.eth', 'abobo.eth'].map((name, followers) => ({ ...person(name), followers }));
const ordered = (term: string) => found([...order].reverse(), term).map(({ name }) => name);
same('order', ordered('bo'), ['bobby.eth', 'bob.eth', 'kate.bob.eth', 'abobo.eth']);
same('exact without .eth', ordered('bob'), ['bob.eth', 'bobby.eth', 'kate.bob.eth', 'abobo.eth']);
same('exact', ordered('bob.eth'), ['bob.eth', 'kate.bob.eth']);

const many = entriesOf(Array.from({ length: 2000 }, () => person(word(letters, 20))));
const began = performance.now();
for (let i = 0; i < 100; i++) {
  find(many, 'ba').sort(better);
}
const each = (performance.now() - began) / 100;
if (each > 10) {
  throw new Error(`a search of 2,000 accounts took ${each} ms, want a few`);
}

for (let round = 0; round < 300; round++) {
  const path = Array.from({ length: 1 + below(3) }, () => word([...letters, '/', '%', '?', '#', ' ', '%2F'], 5) || 'x');
  const q = word([...letters, '&', '=', '+', '#', '?', '%'], 5);
  const place = parse(href(path, { q, tags: undefined }));
  same('path', place.path, path);
  same('query', [...place.query], q ? [['q', q]] : []);
}
same('no place', [parse('').path, parse('#/').path, parse('#/%').path], [[], [], ['%']]);
const copied = { path: ['a', 'x.eth', 'followers'], query: 'tags=b%29' };
for (const [before, after] of [['', ''], ['', '.'], ['', ')'], ['', ').'], ['', '>,'], ['', '**'], ['', '!?'], ['#', ''], ['%2F', '']] as const) {
  const at = href(copied.path, { tags: 'b)' });
  const { path, query } = parse(before === '%2F' ? '#' + encodeURIComponent(at.slice(1)) : at.replace('#', before || '#') + after);
  same(`copied with ${before} and ${after}`, { path, query: query.toString() }, copied);
}
same('copied from a page', parse('#/a/x?sort=earliest&amp;tags=b').query.get('tags'), 'b');
// Whatever a place is of, no end of an address is one that programs leave out.
for (let round = 0; round < 500; round++) {
  const segment = word(['a', '.', ')', '!', '*', "'", '_', '~', '?', '#', '/', '%', '&', ';', 'é', '😀'], 5);
  const query = round % 2 ? { q: segment + 'x' + segment } : {};
  const at = href(['a', 'x' + segment], query);
  const read = parse(at);
  if (/[^\w%-]$/.test(at) || at.endsWith('_')) {
    throw new Error(`${at} ends in what programs leave out`);
  }
  same(`the place of ${at}`, [read.path, read.query.get('q')], [['a', 'x' + segment], query.q ?? null]);
}
const known = (rows: number[], before = new Map<number, number>()) => keysOf(before, rows);
const first = known([4, 5, 6, 7]);
same('keys of rows that come', [...first.values()], [0, 1, 2, 3]);
same('keys after a step', [...known([6, 7, 8, 9], first)], [[6, 2], [7, 3], [8, 0], [9, 1]]);
same('keys after a jump', [...known([90, 91, 92], first)], [[90, 0], [91, 1], [92, 2]]);
same('keys of more rows', [...known([3, 4, 5, 6, 7, 8], first).values()], [4, 0, 1, 2, 3, 5]);

const degrees = [[1, 50], [9, 7], [10, 4], [120, 2]] as const;
same('places by degree', [120, 100, 10, 9, 1].map((degree) => placeOf(degrees, degree)), [1, 3, 3, 7, 14]);
same('at least', tens(degrees), [[10, 6], [100, 2]]);

const nodes = (places: [number, number][]): Node[] =>
  places.map(([x, y], index) => ({ index, person: person(''), radius: 5, community: -1, x, y }));
const crowd = Array.from({ length: 50 }, (_, i): [number, number] => [i % 10 * 20, Math.floor(i / 10) * 20]);
same('a picture of all', boundsOf(nodes([...crowd, [210, 40]])), { left: -5, top: -5, right: 215, bottom: 85 });
same('a picture without outliers', boundsOf(nodes([...crowd, [3000, -900]])), { left: -5, top: -5, right: 185, bottom: 85 });
same('half of a graph is none', boundsOf(nodes([...crowd, ...crowd.map(([x, y]): [number, number] => [x + 900, y])])).right, 1085);

same('views', ['#/', '#/a/x/following', '#/l/7', '#/boards/followers?q=1'].map((hash) => viewOf(parse(hash))), ['', 'a/x', 'l/7', 'boards']);

const hostile = ['javascript:alert(1)', ' JavaScript:alert(1)', 'java\nscript:alert(1)', 'vbscript:x', 'file:///etc/passwd', 'blob:https://x', '//x.example', 'x', ''];
const misleading = [
  'https://x.com\n.evil.example/login', 'https://x.com\t.evil.example', 'https://x.com .evil.example', 'https://x.com\u00a0.evil.example', 'https://x.com\u200b.evil.example',
  'https://x.com\u2028.evil.example', 'https://accounts.google.com@evil.example/', 'https://a:b@evil.example/', 'https://@evil.example/', 'https://accounts.google.com:443@evil.example',
  'https:accounts.google.com@evil.example', 'https:\\\\evil.example', 'https://x.com\\@evil.example', 'https://x.com\\.evil.example', 'https://x.com/\u202egpj.exe', 'https://x.com\u00ad.evil.example',
  'https://x.com\u3164.evil.example', 'https://x.com\ud800', 'https://', 'https://[', 'mailto:a@b.example?bcc=c@d.example', 'mailto:a%0a@b.example', 'mailto:a@b.example,c@d.example', 'mailto:\u202ea@b.example',
];
for (const text of [...hostile, ...misleading, 'data:text/html,<script>']) {
  same(`link ${JSON.stringify(text)}`, link(text), undefined);
}
// A link says where it leads: its host, as browsers ask for it.
const links: [text: string, to: string, shown: string, rest: string][] = [
  ['https://x.example/a', 'https://x.example/a', 'x.example', '/a'],
  [' HTTP://X.example ', 'http://x.example/', 'x.example', ''],
  ['https://x.example:8443/?q=1#z', 'https://x.example:8443/?q=1#z', 'x.example:8443', '/?q=1#z'],
  ['https://аррӏе.com/', 'https://xn--80ak6aa92e.com/', 'xn--80ak6aa92e.com', ''],
  ['https://%61ccounts.google.com.evil.example/', 'https://accounts.google.com.evil.example/', 'accounts.google.com.evil.example', ''],
  ['https://x.com。evil.example', 'https://x.com.evil.example/', 'x.com.evil.example', ''],
  ['https://evil.example/@accounts.google.com', 'https://evil.example/@accounts.google.com', 'evil.example', '/@accounts.google.com'],
  ['https://0x7f.1/', 'https://127.0.0.1/', '127.0.0.1', ''],
  ['mailto:a@x.example', 'mailto:a@x.example', 'a@x.example', ''],
];
for (const [text, to, shown, rest] of links) {
  same(`link ${text}`, link(text), { to, text: shown, rest });
}

// Texts of profiles lead to the web and to mail only, and accounts to where they are.
const leads: [key: string, text: string, to: string | undefined, shown?: string][] = [
  ['url', 'https://a.example/x', 'https://a.example/x', 'a.example'],
  ['url', 'a.example', 'https://a.example/', 'a.example'],
  ['url', 'x.com@evil.example', undefined],
  ['url', ' \tjavascript:alert(1)', undefined],
  ['url', 'java\tscript:alert(1)', undefined],
  ['url', 'data:text/html,x', undefined],
  ['com.twitter', '@alice_', 'https://x.com/alice_', '@alice_'],
  ['com.twitter', 'https://evil.example/x.com', 'https://evil.example/x.com', 'evil.example'],
  ['com.twitter', 'alice/../bob', undefined],
  ['com.twitter', 'javascript:alert(1)', undefined],
  ['com.github', '../../evil', undefined],
  ['com.github', 'alice-b', 'https://github.com/alice-b', 'alice-b'],
  ['org.telegram', '@alice', 'https://t.me/alice', '@alice'],
  ['email', 'a@b.example', 'mailto:a@b.example', 'a@b.example'],
  ['email', 'a@b.example?bcc=c@d.example', undefined],
  ['com.discord', 'alice#1234', undefined],
  ['constructor', 'x', undefined],
  ['toString', 'https://a.example/', 'https://a.example/', 'a.example'],
];
for (const [key, text, to, shown] of leads) {
  const found = linkOf(key, text);
  same(`${key} ${text}`, [found?.to, found?.text], [to, shown]);
}

// Texts are shown as the cases say, which report pages keep to too.
declare const process: { argv: string[] };
const cases = JSON.parse(process.argv[2] ?? '[]') as { in: string; prose: string; name: string }[];
for (const one of cases) {
  same(`prose ${JSON.stringify(one.in)}`, plain(one.in), one.prose);
  same(`name ${JSON.stringify(one.in)}`, named(one.in), one.name);
  for (const shown of [plain, named]) {
    same(`again ${JSON.stringify(one.in)}`, shown(shown(one.in)), shown(one.in));
  }
}
if (cases.length < 40) {
  throw new Error(`got ${cases.length} cases of texts`);
}
same('half a letter', [plain('b\ud800'), named('\udc00x')], ['b\ufffd', '\ufffdx']);
const long = '\u200d\u{e0041}\u0300'.repeat(100_000);
const beganLong = performance.now();
plain(long);
if (performance.now() - beganLong > 5000) {
  throw new Error('a text of 400,000 letters took seconds');
}

// Pictures are what their bytes say, and no larger than they may be.
const big = (n: number) => [n >>> 24, (n >>> 16) & 255, (n >>> 8) & 255, n & 255];
const small = (n: number) => [n & 255, n >> 8];
const letters8 = (text: string) => Array.from(text, (letter) => letter.charCodeAt(0));
const png = (w: number, h: number) => [...letters8('\x89PNG\r\n\x1a\n'), 0, 0, 0, 13, ...letters8('IHDR'), ...big(w), ...big(h), 8, 6, 0, 0, 0];
const gif = (w: number, h: number, fw: number, fh: number) => [...letters8('GIF89a'), ...small(w), ...small(h), 0x80, 0, 0, 0, 0, 0, 1, 1, 1, 0x21, 0xf9, 4, 0, 0, 0, 0, 0, 0x2c, 0, 0, 0, 0, ...small(fw), ...small(fh), 0];
const jpeg = (w: number, h: number, scans = 1) => [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc0, 0, 11, 8, h >> 8, h & 255, w >> 8, w & 255, 1, 1, 0x11, 0, ...Array.from({ length: scans }, () => [0xff, 0xda, 0, 2, 7, 0xff, 0, 0xff, 0xd0]).flat(), 0xff, 0xd9];
const chunk = (name: string, data: number[]) => [...letters8(name), ...small(data.length), 0, 0, ...data, ...(data.length % 2 ? [0] : [])];
const webp = (...chunks: number[][]) => [...letters8('RIFF'), 0, 0, 0, 0, ...letters8('WEBP'), ...chunks.flat()];
const lossy = (w: number, h: number) => chunk('VP8 ', [0, 0, 0, 0x9d, 1, 0x2a, ...small(w), ...small(h), 0, 0, 0, 0, 0, 0, 0, 0]);
const extended = (w: number, h: number) => chunk('VP8X', [0, 0, 0, 0, ...small((w - 1) & 0xffff), (w - 1) >> 16, ...small((h - 1) & 0xffff), (h - 1) >> 16]);
const box = (name: string, ...data: number[][]) => [...big(8 + data.flat().length), ...letters8(name), ...data.flat()];
const avif = (w: number, h: number, brand = 'avif') => [
  ...box('ftyp', letters8(brand), big(0), letters8('mif1')),
  ...box('meta', big(0), box('iprp', box('ipco', box('ispe', big(0), big(w), big(h))))),
];
const types: [name: string, bytes: number[], want: [string, number, number] | undefined][] = [
  ['png', png(96, 64), ['image/png', 96, 64]],
  ['png bomb', png(20_000, 20_000), undefined],
  ['png of no size', png(0, 5), undefined],
  ['png, cut', png(9, 9).slice(0, 20), undefined],
  ['gif', gif(9, 8, 9, 8), ['image/gif', 9, 8]],
  ['gif with a larger frame', gif(9, 8, 30_000, 30_000), undefined],
  ['gif bomb', gif(65_535, 65_535, 1, 1), undefined],
  ['gif without an end', gif(9, 8, 9, 8).slice(0, 24), undefined],
  ['jpeg', jpeg(640, 480), ['image/jpeg', 640, 480]],
  ['jpeg bomb', jpeg(65_500, 65_500), undefined],
  ['jpeg of many scans', jpeg(4000, 4000, 500), undefined],
  ['webp', webp(lossy(64, 48)), ['image/webp', 64, 48]],
  ['webp, extended', webp(extended(64, 48), lossy(64, 48)), ['image/webp', 64, 48]],
  ['webp bomb', webp(extended(16_384, 16_384), lossy(64, 48)), undefined],
  ['webp bomb inside', webp(extended(1, 1), lossy(16_383, 16_383)), undefined],
  ['avif', avif(300, 200), ['image/avif', 300, 200]],
  ['avif that moves', avif(300, 200, 'avis'), ['image/avif', 300, 200]],
  ['avif bomb', avif(65_536, 65_536), undefined],
  ['heic', avif(300, 200, 'heic'), undefined],
  ['svg', letters8('<svg xmlns="http://www.w3.org/2000/svg"/>'), undefined],
  ['svg after a mark', [0xef, 0xbb, 0xbf, ...letters8('<svg/>')], undefined],
  ['bmp', letters8('BM' + ' '.repeat(60)), undefined],
  ['ico', [0, 0, 1, 0, 1, 0, ...png(9, 9)], undefined],
  ['nothing', [], undefined],
];
for (const [name, bytes, want] of types) {
  const found = formatOf(Uint8Array.from(bytes));
  same(name, found && [found.type, found.width, found.height], want);
}
for (let round = 0; round < 20_000; round++) {
  const [, bytes = []] = types[below(types.length)] ?? [];
  const broken = Uint8Array.from(bytes.slice(0, below(bytes.length + 1)), (byte) => (below(12) ? byte : below(256)));
  formatOf(broken); // ends, and throws nothing
}

const base64 = (bytes: number[]) => btoa(bytes.map((byte) => String.fromCharCode(byte)).join(''));
const escaped = (bytes: number[]) => bytes.map((byte) => '%' + byte.toString(16).padStart(2, '0')).join('');
const dot = png(3, 2);
for (const url of [
  'data:image/png;base64,' + base64(dot), ' DATA:image/svg+xml;charset=utf-8;Base64,' + base64(dot), 'data:;base64,' + base64(dot), 'data:text/html,' + escaped(dot),
  'data:,' + escaped(dot) + '#<svg>', 'data:image/png; base64 ,' + base64(dot), 'data:image/png;base64,' + encodeURIComponent(base64(dot)), 'data:image/png;base64,\n' + base64(dot).replace(/.{8}/g, '$& \t'),
]) {
  const bytes = bytesOf(url);
  same(`bytes of ${url}`, [isInline(url), bytes && formatOf(bytes)?.width], [true, 3]);
}
for (const url of ['data:image/svg+xml;base64,' + btoa('<svg/>'), 'data:image/png,<svg/>', 'data:image/png;base64,' + btoa('<svg/>'), 'data:image/png;base64,%', 'data:image/png;base64', 'data:,é']) {
  const bytes = bytesOf(url);
  same(`no picture ${url}`, bytes && formatOf(bytes), undefined);
}
const most = [...dot, ...new Array<number>(mostInline - dot.length).fill(0)];
same('as much as there may be', bytesOf('data:image/png;base64,' + base64(most))?.length, mostInline);
same('more than there may be', [bytesOf('data:image/png;base64,' + base64([...most, 0])), bytesOf('data:image/png,' + 'x'.repeat(5 * mostInline))], [undefined, undefined]);
same('not inline', ['https://x.example/data:image/', 'xdata:image/png,'].map(isInline), [false, false]);

same('clip', [clip('abc', 3), clip('abcd', 3), clip('ab😀😀', 3)], ['abc', 'abc…', 'ab…']);

const tags = ['a,b', '50%', '%2C', 'ünï', '🦊'];
same('tags', tagsOf(new URLSearchParams({ tags: tagQuery(tags) }).get('tags') ?? ''), tags);

const spread = distributionOf([[1, 50], [2, 20], [3, 20], [9, 10]], 3);
same('below', [spread?.below, spread?.accounts], [0.7, 100]);
same('more than all', distributionOf([[1, 4]], 5), { below: 1, accounts: 4 });
same('nobody', distributionOf([], 3), null);

// The cases of TestRecords (site/rules/rules_test.go).
for (const [version, type, tags, state, follows] of [
  [1, 'address', [], 1, true],
  [1, 'address', ['efp', 'top8'], 1, true],
  [1, 'address', ['block'], 2, false],
  [1, 'address', ['mute', 'top8'], 4, false],
  [1, 'address', ['top8', 'mute', 'block', 'block'], 6, false],
  [1, 'address', ['Block', ' mute', '', 'TOP8'], 1, true],
  [2, 'address', [], 1, false],
  [1, '2', ['block'], 2, false],
] as const) {
  same(`state of ${tags.join()}`, stateOf(tags), state);
  same(`follow by ${version} ${type} ${tags.join()}`, isFollow(version, type, tags), follows);
}
