// What needs no browser, run in node by TestUnits. Throws for a promise that is not kept.

import { entriesOf, find, fold, marked, termOf } from '../src/data/match';
import type { Person } from '../src/data/site';
import { distributionOf } from '../src/data/distribution';
import { href, parse, tagQuery, tagsOf, viewOf } from '../src/place';
import { isInline, link, linkOf, picture } from '../src/ui/links';
import { clip, plain } from '../src/ui/plain';

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

const letters = ['a', 'b', 'B', '.', '-', '_', '1', 'é', 'e\u0301', 'ß', 'İ', 'م', '😀', '0x'];
const person = (name: string): Person => ({ address: '0x' + Array.from({ length: 40 }, () => below(16).toString(16)).join(''), name, avatar: '' });

/** How well a text is found, by its definition. */
function naiveRank(text: string, term: string): number {
  const found = Array.from({ length: text.length }, (_, i) => i).filter((i) => text.slice(i).startsWith(term));
  return text === term ? 0
    : text.startsWith(term) ? 1
    : found.some((i) => i > 0 && !/[\p{L}\p{N}\p{M}\p{Cs}]/u.test(text.charAt(i - 1))) ? 2
    : found.length ? 3
    : 4;
}

for (let round = 0; round < 300; round++) {
  const people = Array.from({ length: below(60) }, () => person(word(letters, 8)));
  const typed = below(4) ? word(letters, 3) : (people[below(people.length || 1)]?.address.slice(below(5), 5 + below(36)) ?? '');
  const term = termOf(typed);
  const limit = 1 + below(12);
  const rank = ({ name, address }: Person) => Math.min(naiveRank(fold(name), term), term.length < 3 ? 4 : naiveRank(address, term));
  const want = term ? people.filter((p) => rank(p) < 4).sort((a, b) => rank(a) - rank(b)).slice(0, limit) : [];
  same(`find ${JSON.stringify(typed)}`, find(entriesOf(people), term, limit), want);
  for (const { name } of want) {
    const at = marked(name, term);
    if (at && fold(name.slice(...at)) !== term) {
      throw new Error(`marked ${name}: got ${name.slice(...at)}, want ${term}`);
    }
  }
}

const order = ['bob.eth', 'bobby.eth', 'kate.bob.eth', 'abobo.eth'].map(person);
same('order', find(entriesOf([...order].reverse()), 'bob', 9).map(({ name }) => name), ['bobby.eth', 'bob.eth', 'kate.bob.eth', 'abobo.eth']);
same('exact first', find(entriesOf([...order].reverse()), 'bob.eth', 9)[0]?.name, 'bob.eth');

const many = entriesOf(Array.from({ length: 2000 }, () => person(word(letters, 20))));
const began = performance.now();
for (let i = 0; i < 100; i++) {
  find(many, 'ba', 8);
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
same('views', ['#/', '#/a/x/following', '#/l/7', '#/boards/followers?q=1'].map((hash) => viewOf(parse(hash))), ['', 'a/x', 'l/7', 'boards']);

const hostile = ['javascript:alert(1)', ' JavaScript:alert(1)', 'java\nscript:alert(1)', 'vbscript:x', 'file:///etc/passwd', 'blob:https://x', '//x.example', 'x', ''];
for (const text of [...hostile, 'data:text/html,<script>']) {
  same(`link ${text}`, link(text), undefined);
}
for (const text of [...hostile, 'http://x.example/a.png', 'ipfs://x', 'eip155:1/erc721:0x0/1', 'data:text/html,x', 'mailto:x@x.example']) {
  same(`picture ${text}`, picture(text), undefined);
}
same('links', ['https://x.example/a', 'HTTP://x.example', 'mailto:a@x.example'].map(link), ['https://x.example/a', 'http://x.example/', 'mailto:a@x.example']);
same('pictures', ['https://x.example/a.png', ' data:image/svg+xml,%3Csvg/%3E'].map(picture), ['https://x.example/a.png', 'data:image/svg+xml,%3Csvg/%3E']);
same('inline', ['DATA:image/png;base64,', 'https://x.example/data:image/'].map(isInline), [true, false]);

// Texts of profiles lead to the web and to mail only, and accounts to where they are.
const leads: [key: string, text: string, to: string | undefined][] = [
  ['url', 'https://a.example/x', 'https://a.example/x'],
  ['url', 'a.example', 'https://a.example/'],
  ['url', ' \tjavascript:alert(1)', undefined],
  ['url', 'java\tscript:alert(1)', undefined],
  ['url', 'data:text/html,x', undefined],
  ['com.twitter', '@alice_', 'https://x.com/alice_'],
  ['com.twitter', 'alice/../bob', undefined],
  ['com.twitter', 'javascript:alert(1)', undefined],
  ['com.github', '../../evil', undefined],
  ['com.github', 'alice-b', 'https://github.com/alice-b'],
  ['org.telegram', '@alice', 'https://t.me/alice'],
  ['email', 'a@b.example', 'mailto:a@b.example'],
  ['email', 'a@b.example?bcc=c@d.example', undefined],
  ['com.discord', 'alice#1234', undefined],
  ['constructor', 'x', undefined],
  ['toString', 'https://a.example/', 'https://a.example/'],
];
for (const [key, text, to] of leads) {
  same(`${key} ${text}`, linkOf(key, text), to);
}

same('what hides', plain('a\u202egpj.exe\u0000\r\nb\ud800'), 'a\ufffdgpj.exe\ufffd\nb\ufffd');
same('what is part of a script', plain('\u200fשלום\u200d👩‍👧\t'), '\u200fשלום\u200d👩‍👧\t');
same('clip', [clip('abc', 3), clip('abcd', 3), clip('ab😀😀', 3)], ['abc', 'abc…', 'ab…']);

const tags = ['a,b', '50%', '%2C', 'ünï', '🦊'];
same('tags', tagsOf(new URLSearchParams({ tags: tagQuery(tags) }).get('tags') ?? ''), tags);

const spread = distributionOf([[1, 50], [2, 20], [3, 20], [9, 10]], 3);
same('below', [spread?.below, spread?.accounts], [0.7, 100]);
same('bins', spread?.bins.map((bin) => [bin.from, bin.to, bin.accounts]), [[1, 1, 50], [2, 3, 40], [4, 7, 0], [8, 15, 10]]);
same('more than all', distributionOf([[1, 4]], 5)?.bins.length, 3);
same('nobody', distributionOf([], 3), null);
