// Texts that anybody may have written, such as those of profiles.

import { useState } from 'preact/hooks';
import { number, peopleTexts } from '../texts';

// Controls that are not seen, and those that turn the text after them around, so that a name can look like
// another one; halves of letters. Marks, joiners and the like are part of how scripts are written.
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069\ufeff\p{Surrogate}]/gu;

/** A text as it may be shown: what would hide in it is a replacement character. */
export const plain = (text: string): string => text.replace(/\r\n?/g, '\n').replace(hidden, '\ufffd');

// No letter is cut in half.
const start = (text: string, most: number): string => text.slice(0, most).replace(/[\ud800-\udbff]$/, '') + '…';

/** A text of one line, cut if it is long. */
export const clip = (text: string, most: number): string => plain(text.length > most ? start(text, most) : text);

const much = 400;

/** A text of any length, of which the beginning is shown at first. Its direction is its own. */
export function Long({ text, most = much }: { text: string; most?: number }) {
  const [all, setAll] = useState(false);
  const isLong = text.length > most * 1.25;
  return (
    <>
      <span class="long" dir="auto">
        {plain(isLong && !all ? start(text, most) : text)}
      </span>
      {isLong && (
        <>
          {' '}
          <button type="button" class="plain more" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? peopleTexts.showLess : peopleTexts.showAll(number(text.length))}
          </button>
        </>
      )}
    </>
  );
}
