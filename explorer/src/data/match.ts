// Which accounts a text finds, and in which order. Nothing here needs a browser.

import type { Person } from './site';

/** A text as names are compared: in lower case, letter by letter, and composed, as the client does it. */
export function fold(text: string): string {
  return Array.from(text.normalize(), (letter) => letter.toLowerCase()).join('').normalize();
}

/** An account that can be found. */
export interface Entry {
  person: Person;
  folded: string;
}

/** Makes accounts ready to be searched, in their order. */
export const entriesOf = (people: readonly Person[]): Entry[] => people.map((person) => ({ person, folded: fold(person.name) }));

/** What is looked for, of what was typed. */
export const termOf = (typed: string): string => fold(typed.replace(/\ufe0f/g, '').trim());

// How well an account is found: smaller is better.
export const same = 0;
const beginning = 1;
const word = 2;
const inside = 3;
const none = 4;

// Half of a surrogate pair is in a word too: words of emoji have no ends.
const inWord = /[\p{L}\p{N}\p{M}\p{Cs}]/u;

/** How well a folded term is found in a folded text, and where. */
function within(text: string, term: string): [rank: number, at: number] {
  const at = text.indexOf(term);
  if (at <= 0) {
    return [at < 0 ? none : text.length === term.length ? same : beginning, at];
  }
  for (let next = at; next > 0; next = text.indexOf(term, next + 1)) {
    if (!inWord.test(text.charAt(next - 1))) {
      return [word, next];
    }
  }
  return [inside, at];
}

/** How well a folded term finds an account. A name is exact without .eth too; addresses are found by 3 of their letters at least. */
export function rank({ person, folded }: Entry, term: string): number {
  const [byName] = within(folded, term);
  if (!term.includes('.') && folded === term + '.eth') {
    return same;
  }
  return term.length < 3 ? byName : Math.min(byName, within(person.address, term)[0]);
}

/** An account that a term finds, or the list whose number it is. */
export type Hit = { rank: number; person: Person; token?: string };

/** Of two hits the better one comes first: exact, beginnings, beginnings of words, the rest; of equal ones the most followed. */
export const better = (a: Hit, b: Hit): number =>
  a.rank - b.rank || followersOf(b) - followersOf(a) || (a.person.address < b.person.address ? -1 : 1);

// A list has no followers of its own.
const followersOf = ({ person, token }: Hit): number => (token ? -1 : (person.followers ?? 0));

/** The accounts that a folded term finds, in the order of the entries. */
export function find(entries: readonly Entry[], term: string): Hit[] {
  const hits = term ? entries.map((entry): Hit => ({ rank: rank(entry, term), person: entry.person })) : [];
  return hits.filter((hit) => hit.rank < none);
}

const letters = new Intl.Segmenter();

/** Where a folded term is in a text, as rank finds it: [begin, end], of whole letters as they are seen; undefined if it is not there. */
export function marked(text: string, term: string): [number, number] | undefined {
  const starts: [folded: number, index: number][] = [];
  let folded = '';
  for (const { segment, index } of term ? letters.segment(text) : []) {
    starts.push([folded.length, index]);
    folded += fold(segment);
  }
  const [, at] = within(folded, term);
  if (!term || at < 0) {
    return undefined;
  }
  const begin = Math.max(...starts.filter(([start]) => start <= at).map(([, index]) => index));
  const end = starts.find(([start]) => start >= at + term.length);
  return [begin, end ? end[1] : text.length];
}
