// What a text finds: exactly, among the most followed, and among all accounts with a rank.

import type { Children } from '../elements';
import { everywhere, exact, ready, suggest, termOf, type Hit } from '../data/search';
import { isWhole, type Person } from '../data/site';
import { href, type Place } from '../router';
import { gap, plain } from '../text';
import { number, texts } from '../texts/first';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';
import { Avatar, nameOf, PersonLink } from '../ui/person';

const most = 100;

interface Found {
  hits: Hit[];
  people: Person[];
  /** Whether all accounts were searched, not the most followed only. */
  all: boolean;
  /** How many are searched, of the most followed. */
  size: number;
}

async function search(typed: string): Promise<Found> {
  const [hits, entries, whole] = await Promise.all([exact(typed), ready(), isWhole()]);
  const all = whole && [...termOf(typed)].length > 1;
  return { hits, people: all ? await everywhere(typed, most) : suggest(typed, most), all, size: entries.length };
}

function Row({ children, person }: { children: Children; person: Person }) {
  return (
    <li>
      {children}
      {person.followers !== undefined && (
        <span class="quiet num">
          {number(person.followers)}
          <span class="hidden">
            {gap}
            {texts.followers}
          </span>
        </span>
      )}
    </li>
  );
}

function HitLink({ hit }: { hit: Hit }) {
  const { person } = hit;
  return hit.kind === 'person' && person.address ? (
    <PersonLink person={person} />
  ) : (
    <a class="person" href={href(hit.kind === 'list' ? ['l', hit.token] : ['a', person.name])}>
      <Avatar person={person} />
      <bdi>{hit.kind === 'list' ? texts.list(plain(hit.token)) : nameOf(person)}</bdi>
    </a>
  );
}

function Results({ found, typed }: { found: Found; typed: string }) {
  const { hits, people, all, size } = found;
  return (
    <>
      <p role="status" class={hits.length || people.length ? 'hidden' : 'empty'}>
        {hits.length || people.length ? texts.results(hits.length + people.length) : texts.foundNothing(plain(typed))}
      </p>
      {hits.length > 0 && (
        <section aria-labelledby="exact">
          <h2 id="exact">{texts.matchesExact}</h2>
          <ul class="ranking">
            {hits.map((hit) => (
              <Row key={hit.kind + hit.person.address} person={hit.person}>
                <HitLink hit={hit} />
              </Row>
            ))}
          </ul>
        </section>
      )}
      {people.length > 0 && (
        <section aria-labelledby="found-people">
          <h2 id="found-people">{all ? texts.matchesAll : texts.matchesTop(number(size))}</h2>
          <ol class="ranking">
            {people.map((person) => (
              <Row key={person.address} person={person}>
                <PersonLink person={person} />
              </Row>
            ))}
          </ol>
        </section>
      )}
    </>
  );
}

export function SearchResults({ place }: { place: Place }) {
  const typed = place.query.get('q')?.trim() ?? '';
  const loaded = useLoad(() => search(typed), [typed]);
  return (
    <div class="stack text">
      <Heading title={typed ? texts.searchTitle(plain(typed)) : texts.search} />
      {typed ? (
        <Show loaded={loaded}>{(found) => <Results found={found} typed={typed} />}</Show>
      ) : (
        <p class="empty">{texts.searchNothing}</p>
      )}
    </div>
  );
}
