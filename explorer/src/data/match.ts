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
const same = 0;
const beginning = 1;
const word = 2;
const inside = 3;
const none = 4;

// Half of a surrogate pair is in a word too: words of emoji have no ends.
const inWord = /[\p{L}\p{N}\p{M}\p{Cs}]/u;

function within(text: string, term: string): number {
  const at = text.indexOf(term);
  if (at <= 0) {
    return at < 0 ? none : text.length === term.length ? same : beginning;
  }
  for (let next = at; next > 0; next = text.indexOf(term, next + 1)) {
    if (!inWord.test(text.charAt(next - 1))) {
      return word;
    }
  }
  return inside;
}

/** The place of an account among those that a folded term finds. Addresses are found by 3 of their letters at least. */
export function rank({ person, folded }: Entry, term: string): number {
  const byName = within(folded, term);
  return term.length < 3 ? byName : Math.min(byName, within(person.address, term));
}

/** The best of the accounts with a term: exact first, then beginnings, beginnings of words, and the rest; each as it comes. */
export function find(entries: readonly Entry[], term: string, limit: number): Person[] {
  if (!term) {
    return [];
  }
  const found: Person[][] = Array.from({ length: none }, () => []);
  for (const entry of entries) {
    const people = found[rank(entry, term)];
    if (people && people.length < limit) {
      people.push(entry.person);
    }
  }
  return found.flat().slice(0, limit);
}

/** Where in a name a folded term is: [begin, end]; undefined if it is not there, or as other letters. */
export function marked(name: string, term: string): [number, number] | undefined {
  const at = term ? fold(name).indexOf(term) : -1;
  const end = at + term.length;
  return at < 0 || fold(name.slice(at, end)) !== term ? undefined : [at, end]; // folding may move letters
}
