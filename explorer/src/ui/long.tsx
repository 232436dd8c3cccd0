// A text of any length and height, of which the beginning is shown at first.

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { peopleTexts } from '../texts/accounts';
import { beginning, gap, plain } from '../text';
import { number } from '../texts/first';

const much = 400;
const blank = /\n(?:[^\S\n]*\n){2,}/g;

/** Its direction is its own. Several blank lines are one. */
export function Long({ text, most = much }: { text: string; most?: number }) {
  const [all, setAll] = useState(false);
  const [isHigh, setHigh] = useState(false);
  const box = useRef<HTMLSpanElement>(null);
  const isLong = text.length > most * 1.25;
  useLayoutEffect(() => {
    const shown = box.current;
    if (!shown || all) {
      return;
    }
    const sized = new ResizeObserver(() => setHigh(shown.scrollHeight > shown.clientHeight + 1));
    sized.observe(shown);
    return () => sized.disconnect();
  }, [text, all]);
  const shown = plain(text.trim().replace(/\r\n?/g, '\n').replace(blank, '\n\n'));
  return (
    <>
      <span ref={box} class={all ? 'long' : 'long cut'} dir="auto">
        {isLong && !all ? beginning(shown, most) : shown}
      </span>
      {(isLong || isHigh) && (
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
