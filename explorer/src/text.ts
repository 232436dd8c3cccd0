// What may be shown. Nothing here needs a browser.

declare const isShown: unique symbol;

/**
 * A text that may be shown: our own, or what a function here has made of one that anybody may have
 * written. Elements take no other texts (elements.d.ts).
 */
export type Text = string & { readonly [isShown]: true };

// What is not seen, but changes what is around it, or makes a text differ from one that looks the same.
const unseen = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u115f\u1160\u2800\u3164\uffa0\u{16fe4}\u{1d159}\u{13441}-\u{13446}]/u;
// Formats that are seen, as they enclose numbers.
const enclosing = /[\u0600-\u0605\u06dd\u070f\u0890\u0891\u08e2\u{110bd}\u{110cd}]/u;
// Controls, and halves of letters.
const broken = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Surrogate}]/gu;
const suspicious = /[\p{Default_Ignorable_Code_Point}\p{Cf}\u115f\u1160\u2800\u3164\uffa0\u{16fe4}\u{1d159}\u{13441}-\u{13446}\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\p{Surrogate}]/u;

// The blocks of emoji. As they are the same in every version of Unicode, pages and reports agree (report/plain.go).
const pictographic =
  /[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff\u3030\u303d\u3297\u3299\u{1f000}-\u{1f1e5}\u{1f200}-\u{1f3fa}\u{1f400}-\u{1faff}\u{1fc00}-\u{1fffd}]/u;
const skin = /[\u{1f3fb}-\u{1f3ff}]/u;
const tag = /[\u{e0020}-\u{e007f}]/u;
// The flag of a part of a country: its code in tags, and their end.
const flag = /^\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f}/u;
const longestFlag = 8;

// Indic signs that take the vowel away, before which and after which joiners choose the form.
const virama = /[\u094d\u09cd\u0a4d\u0acd\u0b4d\u0bcd\u0c4d\u0ccd\u0d4d\u0dca\u1039\u103a\u17d2]/u;
const indic = /[\p{Script=Deva}\p{Script=Beng}\p{Script=Guru}\p{Script=Gujr}\p{Script=Orya}\p{Script=Taml}\p{Script=Telu}\p{Script=Knda}\p{Script=Mlym}\p{Script=Sinh}\p{Script=Mymr}\p{Script=Khmr}]/u;
// Arabic letters that join the next one, and those that the one before can join.
const arabic = /^(?=\p{Script=Arabic})\p{L}$/u;
const last = /[\u0621-\u0625\u0627\u0629\u062f-\u0632\u0648\u0671-\u0677\u0688-\u0699\u06c0\u06c3-\u06cb\u06cd\u06cf\u06d2\u06d3\u06d5\u06ee\u06ef]/u;
const alone = /[\u0621\u0674]/u;
const mark = /\p{Mn}/u;
const mostMarks = 4;

/** The nearest letter in a direction, beyond marks. */
function beside(letters: readonly string[], at: number, step: 1 | -1): string {
  let i = at + step;
  while (mark.test(letters[i] ?? '') && Math.abs(i - at) <= mostMarks) {
    i += step;
  }
  return letters[i] ?? '';
}

/** Whether something unseen is part of how an emoji or a word is written (as in RFC 5892, appendix A, for words). */
function belongs(letters: readonly string[], at: number): boolean {
  const letter = letters[at] ?? '';
  const [before, after] = [letters[at - 1] ?? '', letters[at + 1] ?? ''];
  const isJoiner = letter === '\u200d';
  if (letter === '\ufe0f' && /[0-9#*]/.test(before)) {
    return after === '\u20e3';
  }
  if (letter === '\ufe0f' || letter === '\ufe0e') {
    return pictographic.test(before);
  }
  if (tag.test(letter)) {
    let start = at;
    while (at - start < longestFlag && tag.test(letters[start] ?? '')) {
      start--;
    }
    const found = letters.slice(start, start + longestFlag).join('').match(flag);
    return !!found && at - start < Array.from(found[0]).length;
  }
  if (!isJoiner && letter !== '\u200c') {
    return false;
  }
  if (virama.test(before) || (isJoiner && virama.test(after) && indic.test(before))) {
    return true;
  }
  if (isJoiner) {
    const isEnd = pictographic.test(before) || ((before === '\ufe0f' || skin.test(before)) && pictographic.test(letters[at - 2] ?? ''));
    return isEnd && pictographic.test(after);
  }
  const [from, to] = [beside(letters, at, -1), beside(letters, at, 1)];
  return arabic.test(from) && !last.test(from) && !alone.test(from) && arabic.test(to) && !alone.test(to);
}

// No language puts more marks on a letter, and higher piles of them cover lines above and below.
const piled = /([\p{Mn}\p{Me}]{4})[\p{Mn}\p{Me}]+/gu;

/** A text with something in the place of each run of what is not seen, and of too many marks; broken letters and controls are U+FFFD. */
function cleaned(text: string, instead: string): Text {
  if (!suspicious.test(text)) {
    return text.replace(piled, '$1' + instead) as Text;
  }
  const letters = Array.from(text.replace(/\r\n?|[\u2028\u2029]/g, '\n').replace(broken, '\ufffd'));
  let result = '';
  let isRun = false;
  letters.forEach((letter, i) => {
    const isOut = unseen.test(letter) && !enclosing.test(letter) && !belongs(letters, i);
    result += !isOut ? letter : isRun ? '' : instead;
    isRun = isOut;
  });
  return result.replace(piled, '$1' + instead) as Text;
}

/** Between texts. */
export const gap = ' ' as Text;

/** Prose as it may be shown: what is not seen is left out. Report pages do the same (report/plain.go). */
export const plain = (text: string): Text => cleaned(text, '');

/** A name as it may be shown: what is not seen shows as U+FFFD, so that it cannot pass for a name without it. */
export const named = (text: string): Text => cleaned(text, '\ufffd');

// No letter is cut in half.
const start = (text: string, most: number): string => text.slice(0, most).replace(/[\ud800-\udbff]$/, '') + '…';

/** The beginning of a text that is longer. */
export const beginning = (text: string, most: number): Text => plain(start(text, most));

/** A name or the like, cut if it is long. */
export const clip = (text: string, most: number): Text => {
  const line = text.trim();
  return named(line.length > most ? start(line, most) : line);
};
