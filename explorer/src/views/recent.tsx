// Who did what last, for the first view.

import { useState } from 'preact/hooks';
import { recent } from '../data/history';
import { actTexts as words } from '../texts/later';
import { number } from '../texts/first';
import { Act } from '../ui/acts';
import { Show, useLoad } from '../ui/load';

const few = 10;

export function Recent() {
  const loaded = useLoad(recent, []);
  const [all, showAll] = useState(false);
  return (
    <section aria-labelledby="latest">
      <h2 id="latest">{words.latest}</h2>
      <div class="ten">
        <Show loaded={loaded}>
          {({ done, to }) =>
            done.length ? (
              <>
                <p class="quiet small">{words.counted(words.minute(to))}</p>
                <ul class="acts">
                  {done.slice(0, all ? done.length : few).map((one, i) => (
                    <Act key={i} entry={one} actor={one.actor} about={one.person} when={words.ago(to - one.time)} />
                  ))}
                </ul>
                {done.length > few && (
                  <button type="button" aria-expanded={all} onClick={() => showAll(!all)}>
                    {all ? words.fewer : words.allOf(number(done.length))}
                  </button>
                )}
              </>
            ) : (
              <p class="empty">{words.nothing}</p>
            )
          }
        </Show>
      </div>
    </section>
  );
}
