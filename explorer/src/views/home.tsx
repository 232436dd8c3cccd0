// The first view: search, and the accounts with the most followers.

import { top } from '../data/site';
import { Show, useLoad } from '../ui/load';
import { PersonLink } from '../ui/person';
import { number } from '../texts';

export function Home() {
  const loaded = useLoad(top, []);
  return (
    <Show loaded={loaded}>
      {({ people }) => (
        <ol class="people">
          {people.slice(0, 12).map((person) => (
            <li key={person.address}>
              <PersonLink person={person} /> <span class="quiet">{number(person.followers ?? 0)}</span>
            </li>
          ))}
        </ol>
      )}
    </Show>
  );
}
