// Lookalikes, checksums and files, run in node by TestUnits. Throws for a promise that is not kept.

import { checksummed, keccak256 } from '../src/data/checksum';
import { cell, csv, fileName, json, mostExported, pages } from '../src/data/export';
import { likenesses, looksLike, mixedScripts, skeleton, spellsAddress } from '../src/data/lookalikes';
import type { Related } from '../src/data/people';
import type { Person } from '../src/data/site';
import { hasTick } from '../src/data/ticks';

function same(what: string, got: unknown, want: unknown): void {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
}

const holds = (what: string, is: boolean): void => same(what, is, true);

/* Checksums: the vectors of EIP-55, and of Keccak-256 */

for (const address of [
  '0x52908400098527886E0F7030069857D2E4169EE7', '0x8617E340B3D01FA5F11F306F4090FD50E238070D',
  '0xde709f2102306220921060314715629080e2fb77', '0x27b1fdb04752bbc536007a920d24acb045561c26',
  '0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed', '0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359',
  '0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB', '0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb',
]) {
  same('checksummed', checksummed(address.toLowerCase()), address);
  same('checksummed, of upper case', checksummed('0x' + address.slice(2).toUpperCase()), address);
}
same('keccak256 of nothing', keccak256(new Uint8Array()), 'c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470');

/* Lookalikes */

for (const [a, b] of [
  ['vitalik.eth', 'vit\u0430lik.eth'], // Cyrillic а
  ['vitalik.eth', 'vita1ik.eth'],
  ['vitalik.eth', 'v\u0456talik.eth'], // Cyrillic і
  ['vitalik.eth', 'VITALIK.eth'],
  ['vitalik.eth', 'vi\u200btalik.eth'],
  ['vitalik.eth', '\u202evitalik.eth'],
  ['google.eth', 'g00gle.eth'],
  ['modern.eth', 'modem.eth'],
  ['paypai.eth', '\u0440\u0430\u0443\u0440\u0430\u04cf.eth'], // all Cyrillic
  ['scope.eth', '\uff53cope.eth'], // wide
  ['bob.eth', '\ud835\udc1bob.eth'], // mathematical
  ['caf\u00e9.eth', 'cafe\u0301.eth'],
] as const) {
  same(`skeleton of ${escape(b)}`, skeleton(b), skeleton(a));
}
for (const [a, b] of [['vitalik.eth', 'vitalic.eth'], ['anna.eth', 'hanna.eth'], ['cafe.eth', 'café.eth'], ['日本.eth', '日木.eth']] as const) {
  holds(`${a} is not ${b}`, skeleton(a) !== skeleton(b));
}
same('of nothing', skeleton('\u200b\u3164'), '');

const person = (name: string, followers: number, digit: string): Person => ({ address: '0x' + digit.repeat(40), name, avatar: '', followers });
const [vitalik, fake, rival, alone] = [person('vitalik.eth', 100, 'a'), person('vit\u0430lik.eth', 2, 'b'), person('vita1ik.eth', 50, 'c'), person('alone.eth', 1, 'd')] as const;
const all = likenesses([rival, alone, vitalik, fake, person('', 1000, 'e'), person('\u200b', 1000, 'f')]);
same('looks like the one with the most', looksLike(fake, all), vitalik);
same('also with many followers', looksLike(rival, all), vitalik);
same('the original', looksLike(vitalik, all), undefined);
same('nobody', looksLike(alone, all), undefined);
same('no name', looksLike(person('', 0, '1'), all), undefined);
same('nothing that is seen', looksLike(person('\u200b\u202e', 0, '1'), all), undefined);
same('with more followers than the other', looksLike({ ...fake, followers: 1000 }, all), vitalik);
const bought = likenesses([vitalik, { ...fake, followers: 1000 }]);
same('the original, where the other has more followers', looksLike(vitalik, bought), undefined);
same('as plain, with more followers', looksLike({ ...rival, followers: 1000 }, all), undefined);
same('unknown followers are none', looksLike({ address: '0x1', name: fake.name, avatar: '' }, all), vitalik);

for (const [name, scripts] of [
  ['vitalik.eth', []],
  ['vit\u0430lik.eth', ['Latin', 'Cyrillic']],
  ['\u0432\u0438\u0442\u0430.eth', []], // a whole label of one script
  ['\u03b1lpha.eth', ['Greek', 'Latin']],
  ['東京tower.eth', []],
  ['ひらがなカタカナ漢字.eth', []],
  ['한국hello.eth', []],
  ['ひ한.eth', ['Hiragana', 'Hangul']],
  ['東\u0430.eth', ['Han', 'Cyrillic']],
  ['12-3_4.eth', []],
  ['ride🚲crew.eth', []],
  ['caf\u00e9e\u0301.eth', []],
  ['abc\u{10400}.eth', ['Latin', 'Other']],
  ['\u30fcа.eth', ['Cyrillic', 'Hiragana']], // ー is of Japanese
  ['', []],
] as const) {
  same(`scripts of ${name}`, mixedScripts(name), scripts);
}

// Of a name of any length, a beginning is looked at.
const long = 'a\u202e\u0337'.repeat(1_000_000);
holds('a long name has a short skeleton', skeleton(long).length <= 1000);
same('scripts of a long name', mixedScripts('a'.repeat(1_000_000) + '\u0430'), []);

const own = '0xd8da6bf26964af9d7eed9e03e53415d37aa96045';
for (const [name, is] of [
  [own, false],
  ['0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045', false],
  ['0xd8da…6045', false],
  ['0xd8da6bf26964af9d7eed9e03e53415d37aa96046', true],
  ['0Xd8da6bf26964af9d7eed9e03e53415d37aa96046.eth', true],
  ['Oxd8da6bf26964af9d7eed9eO3e534l5d37aa96046', true],
  ['\uff10xabcd\u20261234', true],
  ['0xabcd...6045', true],
  ['0xd8da..1234', true],
  ['0xdeadbeef.eth', false],
  ['0xdesigner.eth', false],
  ['box...cab.eth', false],
  ['', false],
] as const) {
  same(`an address: ${name}`, spellsAddress({ address: own, name, avatar: '' }), is);
}
for (const [name, is] of [['vitalik.eth \u2714', true], ['\u2714\ufe0f', true], ['\u2705', true], ['\u2611', true], ['\u221a', true], ['\u{1f5f8}', true], ['vitalik.eth', false], ['v', false]] as const) {
  same(`a check mark: ${name}`, hasTick(name), is);
}

/* Files */

const row = (name: string, more: Partial<Related> = {}): Related => ({ address: '0xab', name, avatar: '', tags: [], follows: true, blocks: false, mutes: false, added: 0, ...more });

/** Reads a file as RFC 4180 has it. */
function parsed(text: string): string[][] {
  const rows: string[][] = [[]];
  const cells = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n|$)/gy;
  for (let found = cells.exec(text); found && cells.lastIndex <= text.length; found = cells.exec(text)) {
    const [whole, value = '', end] = found;
    rows.at(-1)?.push(value.startsWith('"') ? value.slice(1, -1).replaceAll('""', '"') : value);
    if (end === '\r\n') {
      rows.push([]);
    }
    if (!whole) {
      break;
    }
  }
  return rows.slice(0, -1);
}

const hostile = [
  '=HYPERLINK("https://leak.example","x")', '+1', '-1', '@SUM(A1)', '\t=1', ' =1', '\u00a0=1', '\u200b=1', '\u202e=1', '\uff1d1', '%0a=1', '|calc',
  'a"b', 'a,b', 'a\nb', 'a\r\n=1', '"', '', ',,,', '\ud800', '\u0000=1', 'x'.repeat(10_000), '\u202egpj.exe', '🦊', "'=1", ';=1',
];
const file = [...csv(hostile.map((name) => row(name, { tags: [name, 'b'], followers: 3, added: Date.UTC(2026, 0, 2) })))].join('');
const read = parsed(file);
same('lines', read.length, hostile.length + 1);
same('head', read[0], ['address', 'name', 'says', 'tags', 'followers', 'added']);
read.slice(1).forEach((cells, i) => {
  const what = JSON.stringify(hostile[i]);
  same(`cells of ${what}`, [cells.length, cells[0], cells[2], cells[4], cells[5]], [6, '0xab', 'follows', '3', '2026-01-02T00:00:00.000Z']);
  for (const text of [cells[1] ?? '', cells[3] ?? '']) {
    holds(`${what} is no formula`, !/^[\s\ufffd]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]/.test(text) && !/^[\t\r]/.test(text));
    holds(`${what} has nothing that is not seen`, !/[\u200b-\u200f\u202a-\u202e\u0000\ud800]/.test(text.replace(/🦊/g, '')));
  }
});
holds('all lines end in CRLF', file.endsWith('\r\n'));
same('a plain cell', cell('alice.eth'), 'alice.eth');
same('a formula', cell('=1+1'), "'=1+1");
same('quotes', cell('say "hi", you'), '"say ""hi"", you"');

const head = { site: 'https://follow.example/', as_of: '2026-11-01T00:00:00Z', of: '0xab', kind: 'following', cut: false };
const text = [...json(head, hostile.map((name) => row(name, { tags: [name] })))].join('');
const value = JSON.parse(text) as { of: string; accounts: { name: string; tags: string[]; says: string[] }[] };
same('JSON', [value.of, value.accounts.map(({ name }) => name), value.accounts.map(({ tags }) => tags[0])], ['0xab', hostile, hostile]);
holds('what is not seen is spelled out', !/[\u200b-\u200f\u202a-\u202e]/.test(text));
same('of nobody', (JSON.parse([...json(head, [])].join('')) as { accounts: unknown[] }).accounts, []);
same('says', (JSON.parse([...json(head, [row('', { follows: false, blocks: true, mutes: true })])].join('')) as typeof value).accounts[0]?.says, ['blocks', 'mutes']);

const address = '0x' + 'a'.repeat(40);
same('name of a file', fileName('card', { name: 'alice.eth', address }, 'png'), 'card-alice.eth.png');
for (const name of ['../x', 'a/b', 'a..b', '.hidden', '\u202egpj.eth', 'x'.repeat(65), '', 'a\\b', 'a:b']) {
  same(`name of a file of ${name}`, fileName('followers', { name, address }, 'csv'), `followers-${address}.csv`);
}

// Pages end where rows do, at the bound, and when they are stopped.
async function exported(count: number, stop = new AbortController().signal): Promise<[rows: number, reads: number]> {
  let [rows, reads] = [0, 0];
  for await (const page of pages(async (offset, limit) => (reads++, Array.from({ length: Math.max(0, Math.min(limit, count - offset)) }, (_, i) => i)), stop)) {
    rows += page.length;
  }
  return [rows, reads];
}
same('few', await exported(20), [20, 1]);
same('a whole page', await exported(2000), [2000, 3]);
same('too many', await exported(mostExported + 5), [mostExported, mostExported / 1000]);
const stop = new AbortController();
let seen = 0;
try {
  for await (const page of pages(async () => Array.from({ length: 1000 }, () => 0), stop.signal)) {
    seen += page.length;
    stop.abort();
  }
  throw new Error('not stopped');
} catch (error) {
  same('stopped', [(error as Error).name, seen], ['AbortError', 1000]);
}
