// A text of any length, of which the beginning is shown at first.

import { useState } from 'preact/hooks';
import { peopleTexts } from '../texts/accounts';
import { beginning, gap, plain } from '../text';
import { number } from '../texts/first';

const much = 400;

/** Its direction is its own. */
export function Long({ text, most = much }: { text: string; most?: number }) {
  const [all, setAll] = useState(false);
  const isLong = text.length > most * 1.25;
  return (
    <>
      <span class="long" dir="auto">
        {isLong && !all ? beginning(text, most) : plain(text)}
      </span>
      {isLong && (
        <>
          {gap}
          <button type="button" class="plain more" aria-expanded={all} onClick={() => setAll(!all)}>
            {all ? peopleTexts.showLess : peopleTexts.showAll(number(text.length))}
          </button>
        </>
      )}
    </>
  );
}
