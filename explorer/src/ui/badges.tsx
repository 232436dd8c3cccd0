// The badges of an account.

import { useRef } from 'preact/hooks';
import { peopleTexts as words } from '../texts/accounts';
import { badges, type Event, type Profile } from '../data/people';
import { usePicture } from '../pictures/picture';
import { clip } from '../text';
import { number } from '../texts/first';
import { link } from './links';
import { Show, useLoad } from './load';
import { Outside } from './textlist';

function Badge({ event }: { event: Event }) {
  const box = useRef<HTMLSpanElement>(null);
  const source = usePicture(event.image, box);
  const to = link(event.url);
  return (
    <li class="badge card">
      <span ref={box} class={source ? 'shown' : 'blank'} aria-hidden="true">
        {source && <img src={source} alt="" width={72} height={72} />}
      </span>
      <div>
        <bdi>{clip(event.name || event.id, 80)}</bdi>
        {to && (
          <p class="small">
            <Outside link={{ ...to, rest: '' }} />
          </p>
        )}
        <p class="quiet small">{clip(event.date, 40)}</p>
        <p class="quiet small line">
          <bdi>{clip(event.place, 100)}</bdi>
        </p>
      </div>
    </li>
  );
}

export function Badges({ person }: { person: Profile }) {
  const loaded = useLoad(() => badges(person), [person.address]);
  if (loaded.state === 'loading') {
    return null; // it is the last part, so that nothing moves
  }
  return (
    <Show loaded={loaded}>
      {(all) =>
        all.length > 0 && (
          <section class="stack tight">
            <h2>{words.badges(number(all.length))}</h2>
            <ul class="columns">
              {all.map((event, i) => (
                <Badge key={i} event={event} />
              ))}
            </ul>
          </section>
        )
      }
    </Show>
  );
}
