// Names that look like others: by the skeletons of Unicode TS 39, and by letters of several scripts. Nothing here needs a
// browser.

import { plain } from '../text';
import { confusables } from './confusables';
import type { Person } from './site';

const looks = new Map<string, string>();
for (const line of confusables) {
  const [look = '', letters = ''] = line.split(' ');
  for (const letter of letters) {
    looks.set(letter, look);
  }
}

/** Beyond this many letters, a name is compared by its beginning: no reader looks further. */
const longest = 255;

/** What a name looks like: names that look the same have the same one. Names are compared in lower case, as ENS has them. */
export function skeleton(name: string): string {
  const seen = plain(name.slice(0, longest)).replace(/[\ufe0e\ufe0f\u200c\u200d\ufffd\s]/g, '');
  const folded = seen.normalize('NFKC').toLowerCase().normalize('NFD');
  return Array.from(folded, (letter) => looks.get(letter) ?? letter).join('').normalize('NFD');
}

/** Of the accounts whose names look the same, those with the most followers. */
interface Alike {
  most: Person;
  /** Among those whose names have no letters but those that every keyboard has. */
  plain: Person | undefined;
}

const isPlain = (name: string): boolean => /^[!-~]+$/.test(name);
const more = (one: Person, other: Person | undefined): Person => (other && (other.followers ?? 0) >= (one.followers ?? 0) ? other : one);

/** The accounts that others may be taken for, by their skeletons. */
export function likenesses(people: readonly Person[]): ReadonlyMap<string, Alike> {
  const found = new Map<string, Alike>();
  for (const person of people) {
    const look = skeleton(person.name);
    const others = found.get(look);
    if (look) {
      found.set(look, { most: more(person, others?.most), plain: isPlain(person.name) ? more(person, others?.plain) : others?.plain });
    }
  }
  return found;
}

/**
 * Whom an account looks like; undefined for nobody. Followers can be bought: a name of plain letters is told from those
 * with more followers that are as plain, and any other name from a plain one, however many follow it.
 */
export function looksLike({ address, name, followers = 0 }: Person, all: ReadonlyMap<string, Alike>): Person | undefined {
  const { most, plain: original } = (name && all.get(skeleton(name))) || {};
  const other = isPlain(name) ? original : (original ?? most);
  return other && other.address !== address && ((!isPlain(name) && original) || (other.followers ?? 0) > followers) ? other : undefined;
}

// What an address looks like, as a whole or as its beginning and its end.
const digit = `(?:${[...new Set(Array.from('0123456789abcdef', skeleton))].join('|')})`;
const start = skeleton('0x');
const written = new RegExp(`(?<![\\p{L}\\p{N}])${start}(?:(${digit}{3,})\\.{2,}(${digit}{3,})|${digit}{32,})`, 'u');

/** Whether a name looks like an address that is not the account's: other accounts without a name are shown by theirs. */
export function spellsAddress({ address, name }: Person): boolean {
  const [all, first, end] = skeleton(name).match(written) ?? [];
  const own = skeleton(address);
  return all !== undefined && (first !== undefined && end !== undefined ? !(own.startsWith(start + first) && own.endsWith(end)) : all !== own);
}

// The scripts that names are told by; all others count as one more.
const scripts = [
  'Latin', 'Cyrillic', 'Greek', 'Armenian', 'Georgian', 'Hebrew', 'Arabic', 'Han', 'Hiragana', 'Katakana', 'Bopomofo', 'Hangul', 'Thai',
  'Lao', 'Khmer', 'Myanmar', 'Tibetan', 'Devanagari', 'Bengali', 'Gurmukhi', 'Gujarati', 'Oriya', 'Tamil', 'Telugu', 'Kannada', 'Malayalam',
  'Sinhala', 'Ethiopic', 'Cherokee', 'Canadian_Aboriginal', 'Coptic', 'Lisu', 'Mongolian', 'Nko', 'Tifinagh', 'Vai', 'Yi',
] as const;
export type Script = (typeof scripts)[number] | 'Other';
const tests = scripts.map((name) => ({ name, only: new RegExp(`\\p{Script=${name}}`, 'u'), among: new RegExp(`\\p{Script_Extensions=${name}}`, 'u') }));
const shared = /[\p{Script=Common}\p{Script=Inherited}]/u;

// Scripts that one language is written in together, with Latin ("Highly Restrictive" of Unicode TS 39).
const together: readonly (readonly Script[])[] = [
  ['Latin', 'Han', 'Hiragana', 'Katakana'],
  ['Latin', 'Han', 'Bopomofo'],
  ['Latin', 'Han', 'Hangul'],
];

/** The scripts of a label, if no language is written in all of them; none of most names. */
function mixedIn(label: string): Script[] {
  const found = new Set<Script>();
  const several: string[] = []; // letters that several scripts have
  for (const letter of label) {
    if (!shared.test(letter)) {
      found.add(tests.find(({ only }) => only.test(letter))?.name ?? 'Other');
    } else if (!/\p{Script_Extensions=Common}|\p{Script_Extensions=Inherited}/u.test(letter)) {
      several.push(letter);
    }
  }
  const fits = (set: readonly Script[]) => [...found].every((script) => set.includes(script));
  if (found.size > 1 && !together.some(fits)) {
    return [...found];
  }
  // "ー" belongs to Japanese only, whose letters are not among those of, say, Cyrillic.
  const [script] = found;
  const stranger = found.size === 1 && several.map((letter) => tests.filter(({ among }) => among.test(letter))).find(
    (all) => all.length && !all.some(({ name }) => name === script || together.some((set) => set.includes(name) && fits(set))),
  );
  return stranger && script ? [script, stranger[0]?.name ?? 'Other'] : [];
}

/** The scripts that are mixed in a name as no language does; none for most names. Each label counts by itself, as "eth" does. */
export const mixedScripts = (name: string): Script[] => [...new Set(name.slice(0, longest).normalize().split('.').flatMap(mixedIn))];
