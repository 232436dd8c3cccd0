// What a text finds: as many as its reader wants to see, of as many as he wants to be searched.

import { useEffect, useRef, useState } from 'preact/hooks';
import { further, search, type Found as Results, type Hit } from '../data/search';
import type { Place } from '../router';
import { plain } from '../text';
import { number, texts } from '../texts/first';
import { searchTexts as words } from '../texts/later';
import { Heading } from '../ui/heading';
import { Failed, Show, useLoad } from '../ui/load';
import { Avatar } from '../ui/person';
import { Found, FoundFollowers, keyOf, placeOf } from '../ui/search';
import { Legend, Marks } from '../ui/slots';

const step = 100; // hits shown at once

function Row({ hit, typed }: { hit: Hit; typed: string }) {
  return (
    <li>
      <a class="person" href={placeOf(hit)}>
        <Avatar person={hit.person} />
        <Found hit={hit} typed={typed} marks={!hit.token && <Marks address={hit.person.address} />} />
      </a>
      <FoundFollowers hit={hit} />
    </li>
  );
}

/** Reads further while it is wanted, and shows what was found so far. */
function useFurther(first: Results) {
  const [found, set] = useState(first);
  const [isReading, setReading] = useState(false);
  const [error, fail] = useState<Error>();
  const wanted = useRef(0);
  const stop = () => {
    wanted.current++;
    setReading(false);
  };
  const go = async (from: Results) => {
    const turn = ++wanted.current;
    setReading(true);
    fail(undefined);
    try {
      for await (const next of further(from)) {
        if (turn !== wanted.current) {
          return;
        }
        set(next);
      }
    } catch (caught) {
      if (turn === wanted.current) {
        fail(caught as Error);
      }
    }
    if (turn === wanted.current) {
      setReading(false);
    }
  };
  useEffect(() => stop, []);
  return { found, isReading, error, go: () => void go(found), again: () => void go(first), stop };
}

function List({ first, typed }: { first: Results; typed: string }) {
  const { found, isReading, error, go, again, stop } = useFurther(first);
  const [most, show] = useState(step);
  const { hits, total, isPart, read, of } = found;
  const shown = Math.min(most, hits.length);
  return (
    <>
      <div class="row" aria-busy={isReading}>
        <p role="status">
          {!total ? words.none(plain(typed)) : shown < total ? words.first(number(shown), number(total), isPart) : words.found(total, isPart)}
        </p>
        {isPart && <span class="quiet small">{read ? words.read(number(read), number(of)) : words.most(number(found.most))}</span>}
        {isPart && found.isWhole && (
          <button type="button" onClick={isReading ? stop : go}>
            {isReading ? words.stop : words.all}
          </button>
        )}
      </div>
      {hits.length > 0 && <Legend />}
      {error && <Failed error={error} retry={again} />}
      <ol class="ranking">
        {hits.slice(0, shown).map((hit) => (
          <Row key={keyOf(hit)} hit={hit} typed={typed} />
        ))}
      </ol>
      {shown < hits.length && (
        <button type="button" onClick={() => show(shown + step)}>
          {words.more}
        </button>
      )}
    </>
  );
}

export function SearchResults({ place }: { place: Place }) {
  const typed = place.query.get('q')?.trim() ?? '';
  const loaded = useLoad(() => search(typed), [typed]);
  return (
    <div class="stack text">
      <Heading title={typed ? words.title(plain(typed)) : texts.search} />
      {typed ? (
        <Show loaded={loaded}>{(first) => <List key={typed} first={first} typed={typed} />}</Show>
      ) : (
        <p class="empty">{words.nothing}</p>
      )}
    </div>
  );
}
