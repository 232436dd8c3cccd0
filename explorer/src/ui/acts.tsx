// What accounts did, in lines.

import type { Person } from '../data/site';
import type { Entry } from '../data/ops';
import { actTexts } from '../texts/later';
import { clip, type Text } from '../text';
import { PersonLink } from './person';

interface Props {
  entry: Entry;
  /** Who did it, and to whom. The account that a page is of is not named in its lines. */
  actor?: Person;
  about?: Person;
  when: Text;
}

export function Act({ entry: { action, tag, time }, actor, about, when }: Props) {
  return (
    <li class={actor && about ? 'act both' : actor ? 'act by' : 'act'}>
      {actor && <PersonLink brief person={actor} />}
      <span class={action === 'unfollow' ? 'what bad small' : 'what quiet small'}>{actTexts.did[action]}</span>
      {about && <PersonLink brief person={about} />}
      {tag && (
        <span class="chip">
          <bdi>{clip(tag, 40)}</bdi>
        </span>
      )}
      <time class="quiet small num" dateTime={new Date(time).toISOString()}>
        {when}
      </time>
    </li>
  );
}
