// The first view: what this is, and the accounts with the most followers.

import { top } from '../data/site';
import { number, texts } from '../texts';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';
import { PersonLink } from '../ui/person';

export function Home() {
  const loaded = useLoad(top, []);
  return (
    <div class="stack">
      <Heading title={texts.title}>{texts.welcome}</Heading>
      <Show loaded={loaded}>
        {({ people }) => (
          <ol class="columns">
            {people.slice(0, 12).map((person) => (
              <li key={person.address} class="row between">
                <PersonLink person={person} /> <span class="quiet num">{number(person.followers ?? 0)}</span>
              </li>
            ))}
          </ol>
        )}
      </Show>
    </div>
  );
}
