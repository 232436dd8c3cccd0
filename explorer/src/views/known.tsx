// Whom the reader follows among the followers of an account.

import { acquainted } from '../data/relations';
import { useMine } from '../data/mine';
import type { Profile, Related } from '../data/people';
import { mineTexts as words } from '../texts/mine';
import { number } from '../texts/first';
import { Show, useLoad } from '../ui/load';
import { called } from '../ui/person';
import { Rows } from '../ui/rows';
import { relatedRow } from './people';

/** Followers that are looked at. */
const among = 20_000;
const rowHeight = 68; // in CSS pixels
const row = (person: Related) => relatedRow(person);

export function Known({ person }: { person: Profile }) {
  const { me } = useMine();
  const loaded = useLoad(() => acquainted(person, among), [me?.address, person.address]);
  if (!me) {
    return <p class="empty">{words.nobody}</p>;
  }
  const title = words.knownTitle(called(person));
  return (
    <Show loaded={loaded}>
      {(found) => (
        <section class="stack tight">
          <h2>{title}</h2>
          {found?.more && <p class="quiet small">{words.knownSome(number(among))}</p>}
          <Rows
            label={title}
            source={`known ${me.address} ${person.address}`}
            total={found?.people.length ?? 0}
            height={rowHeight}
            page={async (offset, limit) => found?.people.slice(offset, offset + limit) ?? []}
            row={row}
            empty={<p class="empty">{words.knownNone}</p>}
          />
        </section>
      )}
    </Show>
  );
}
