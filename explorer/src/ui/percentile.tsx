// Where an account is among all: a strip from the fewest to the most, and what it says in words.

import { peopleTexts as words } from '../texts/accounts';
import { distribution, type Kind } from '../data/people';
import { number, percent } from '../texts/first';
import { useKept, useLoad } from './load';

export function Percentile({ kind, count }: { kind: Kind; count: number }) {
  const known = useKept(useLoad(() => distribution(kind, count), [kind, count]));
  return (
    <div class="percentile">
      {known && (
        <>
          <div class="strip" aria-hidden="true" style={{ '--part': known.below }} />
          <p class="quiet small">{words.below[kind](percent(known.below), number(known.accounts))}</p>
        </>
      )}
    </div>
  );
}
