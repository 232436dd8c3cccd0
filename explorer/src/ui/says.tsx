// Which of the accounts of a list are shown: those that are followed, blocked or muted, with how many there are.

import { peopleTexts as words } from '../texts/accounts';
import { shows, type Kind, type Said, type Show } from '../data/people';
import { gap } from '../text';
import { number } from '../texts/first';

interface Props {
  kind: Kind;
  said: Said;
  total: number;
  show: Show;
  choose: (show: Show) => void;
}

/** Nothing where all are followed. */
export function Says({ kind, said, total, show, choose }: Props) {
  if (!said.out && show === 'follows') {
    return null;
  }
  const counts: Record<Show, number> = { follows: total - said.out, blocks: said.blocks, mutes: said.mutes, all: total };
  return (
    <div class="filters" role="group" aria-label={words.shown}>
      {shows
        .filter((one) => counts[one] > 0 || one === show)
        .map((one) => (
          <button key={one} type="button" class="chip" aria-pressed={one === show} onClick={() => choose(one)}>
            {words.shows[kind][one]}
            {gap}
            <span>{number(counts[one])}</span>
          </button>
        ))}
    </div>
  );
}
