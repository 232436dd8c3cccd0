// An account: which part of it is shown, below its head.

import type { Children } from '../elements';
import type { ComponentType } from 'preact';
import { peopleTexts as words } from '../texts/accounts';
import { isKind, profile, type Profile } from '../data/people';
import { href, type Place } from '../router';
import { clip } from '../text';
import { texts } from '../texts/first';
import { Heading } from '../ui/heading';
import { Later } from '../ui/later';
import { Show, useLoad } from '../ui/load';
import { Overview } from './overview';
import { Relations } from './people';
import { Head } from './profilehead';

/** The user of a place of an account, which may also be named without `a`. */
const userOf = ({ path: [first = '', second = ''] }: Place): string => (first === 'a' ? second : first);

/** Views of other modules, which load with what they need, by the segment after the account. */
const later: Record<string, () => Promise<ComponentType<{ person: Profile; place: Place }>>> = {
  common: async () => (await import('./common')).Common,
  activity: async () => (await import('./activity')).Activity,
  then: async () => (await import('./then')).Then,
  graph: async () => (await import('./neighbourhood')).Neighbourhood,
  known: async () => (await import('./known')).Known,
};

/** What is shown of the account, by the segment after it; undefined for its profile. */
function partOf({ path }: Place): string | undefined {
  const part = path[path[0] === 'a' ? 2 : 1];
  return part !== undefined && (isKind(part) || Object.hasOwn(later, part)) ? part : undefined;
}

function Nobody({ user }: { user: string }) {
  return (
    <div class="empty">
      <Heading title={words.nobody} />
      <p>{words.aboutNobody(clip(user, 100))}</p>
      <a href={href([])}>{texts.home}</a>
    </div>
  );
}

function Part({ person, part, place }: { person: Profile; part: string | undefined; place: Place }): Children {
  const load = part && later[part];
  if (load) {
    const path = ['a', person.address, ...place.path.slice(place.path[0] === 'a' ? 2 : 1)];
    return <Later key={part} load={load} given={{ person, place: { ...place, path } }} />;
  }
  if (part && isKind(part)) {
    return <Relations key={part} subject={person} kind={part} place={place} />;
  }
  return <Overview person={person} />;
}

/** An account and what is around it. */
export function Account({ place }: { place: Place }) {
  const user = userOf(place);
  const loaded = useLoad(() => profile(user), [user]);
  const part = partOf(place);
  return (
    <Show loaded={loaded}>
      {(person) =>
        person ? (
          <div class="stack">
            <Head person={person} part={part} />
            <Part person={person} part={part} place={place} />
          </div>
        ) : (
          <Nobody user={user} />
        )
      }
    </Show>
  );
}
