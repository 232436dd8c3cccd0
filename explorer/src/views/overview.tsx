// The profile of an account: what it says of itself, how it is counted, and what lists and tags say of it.

import type { Children } from '../elements';
import { useEffect, useState } from 'preact/hooks';
import { peopleTexts as words } from '../texts/accounts';
import { isKind, tagsOf, topEight, type Kind, type Profile, type RankedBoard, type Said, type Show as Which, type Tags } from '../data/people';
import { openBoard } from '../data/boards';
import { hasTick } from '../data/ticks';
import { tagQuery } from '../place';
import { href, type Href } from '../router';
import { clip, gap, plain, type Text } from '../text';
import { number } from '../texts/first';
import { Badges } from '../ui/badges';
import { Show, useKept, useLoad } from '../ui/load';
import { Percentile } from '../ui/percentile';
import { Avatar, Name } from '../ui/person';
import { FoldedTexts, TextList } from '../ui/textlist';

/* What the account says of itself */

/** Members of a profile that people look for; the others are below. */
const main = [
  'url',
  'email',
  'com.twitter',
  'com.github',
  'org.telegram',
  'com.discord',
  'xyz.farcaster',
  'location',
  'keywords',
];

function About({ person }: { person: Profile }) {
  const known = main.flatMap((name) => person.texts.filter(([key]) => key === name));
  const others = person.texts.filter(([key]) => !main.includes(key) && key !== 'name');
  const chains = person.chains.filter(([, address]) => address.toLowerCase() !== person.address);
  if (!known.length && !others.length && !chains.length) {
    return person.bare ? <p class="notice">{words.bare}</p> : null;
  }
  return (
    <section class="stack tight" aria-label={words.about}>
      {known.length > 0 && <TextList texts={known} />}
      <FoldedTexts summary={words.records(number(others.length))} texts={others} />
      <FoldedTexts summary={words.chains(number(chains.length))} texts={chains} />
    </section>
  );
}

/* How it is counted */

const tab = (person: Profile, kind: Kind, show?: Which): Href => href(['a', person.address, kind], { show });

function Measure({ name, count, to, children }: { name: Text; count?: number; to?: Href; children?: Children }) {
  return (
    <li class="card">
      <p class="quiet small">{name}</p>
      {count !== undefined && (to ? <a class="count" href={to}>{number(count)}</a> : <p class="count">{number(count)}</p>)}
      {children}
    </li>
  );
}

const placeOn = (person: Profile, board: RankedBoard) => person.ranks.find(([one]) => one === board)?.[1];

function Place({ person, board }: { person: Profile; board: RankedBoard }) {
  const place = placeOn(person, board);
  if (place === undefined || board === 'blocked') {
    return null;
  }
  const text = place === 1 ? words.first[board] : words.place(number(place));
  return person.whole || isKind(board) ? (
    <a class="small" href={href(['boards', board])}>
      {text}
    </a>
  ) : (
    <p class="small">{text}</p>
  );
}

/** How many accounts it follows that follow it: the leaderboard says so, in the row of the account. */
async function mutualsOf(person: Profile): Promise<number | undefined> {
  const place = placeOn(person, 'mutuals');
  const [row] = place && person.whole ? await (await openBoard('mutuals')).page(place - 1, 1) : [];
  return row?.address === person.address ? row.counts.mutuals : undefined;
}

/** Counts first, and below them the places that they make. To be blocked by many is no place to be proud of. */
function Counts({ person, said }: { person: Profile; said: { given: Said; received: Said } | undefined }) {
  const isKnown = (board: RankedBoard) => placeOn(person, board) !== undefined;
  const mutuals = useKept(useLoad(() => mutualsOf(person), [person]));
  const kinds = (['followers', 'following'] as const).filter((kind) => person[kind] !== undefined || isKnown(kind));
  const { given, received } = said ?? {};
  const others: [name: Text, count: number | undefined, to: Href][] = [
    [words.measures.blocked, received?.blocks, tab(person, 'followers', 'blocks')],
    [words.measures.muted, received?.mutes, tab(person, 'followers', 'mutes')],
    [words.blocking, given?.blocks, tab(person, 'following', 'blocks')],
    [words.muting, given?.mutes, tab(person, 'following', 'mutes')],
  ];
  const top = received?.top8.length;
  if (!kinds.length || person.bare) {
    return null;
  }
  return (
    <section class="stack tight">
      <h2>{words.counts}</h2>
      <ul class="measures">
        {kinds.map((kind) => (
          <Measure key={kind} name={words.measures[kind]} count={person[kind]} to={tab(person, kind)}>
            <Place person={person} board={kind} />
            {person[kind] ? <Percentile kind={kind} count={person[kind]} /> : null}
          </Measure>
        ))}
      </ul>
      <ul class="measures few">
        {(top || isKnown('top8')) && (
          <Measure name={words.measures.top8} count={top} to={href(['a', person.address, 'followers'], { tags: 'top8' })}>
            <Place person={person} board="top8" />
          </Measure>
        )}
        {isKnown('mutuals') && (
          <Measure name={words.measures.mutuals} count={mutuals}>
            <Place person={person} board="mutuals" />
          </Measure>
        )}
        {others.map(([name, count, to]) => (count ? <Measure key={name} name={name} count={count} to={to} /> : null))}
      </ul>
    </section>
  );
}

/* Whom it puts first */

function TopEight({ person }: { person: Profile }) {
  const { address, list } = person;
  const people = useKept(useLoad(() => topEight({ address, list }), [address, list]));
  if (!people?.length) {
    return null;
  }
  return (
    <section class="stack tight">
      <h2>{words.top8}</h2>
      <ul class="top8">
        {people.map((one) => (
          <li key={one.address}>
            <a href={href(['a', one.address])}>
              <Avatar person={one} size={56} />
              <Name person={one} />
            </a>
          </li>
        ))}
      </ul>
    </section>
  );
}

/* Its lists, and tags */

function Lists({ person }: { person: Profile }) {
  if (!person.list && !person.lists.length) {
    return null;
  }
  return (
    <section class="stack tight">
      <h2>{words.lists}</h2>
      <p class="row">
        {person.list && (
          <a class="chip strong" href={href(['l', person.list])}>
            <bdi>{words.list(plain(person.list))}</bdi>
            {words.between}
            {words.primary}
          </a>
        )}
        {person.lists.map((token) => (
          <a key={token} class="chip" href={href(['l', token])}>
            <bdi>{words.list(plain(token))}</bdi>
          </a>
        ))}
      </p>
    </section>
  );
}

const mostTags = 30;

function TagLinks({ name, tags, to }: { name: Text; tags: Tags; to: (tag: string) => Href }) {
  const [all, setAll] = useState(false);
  return (
    <div class="stack tight">
      <h2>{name}</h2>
      {tags.some(({ tag }) => hasTick(tag)) && <p class="notice small">{words.tickInTag}</p>}
      <p class="row">
        {tags.slice(0, all ? Infinity : mostTags).map(({ tag, count }) => (
          <a key={tag} class="chip" href={to(tag)}>
            <bdi>{clip(tag, 40)}</bdi>
            {gap}
            <span class="quiet">{number(count)}</span>
          </a>
        ))}
        {tags.length > mostTags && !all && (
          <button type="button" class="plain small" onClick={() => setAll(true)}>
            {words.moreTags(number(tags.length - mostTags))}
          </button>
        )}
        {!tags.length && <span class="quiet">{words.noTags}</span>}
      </p>
    </div>
  );
}

export function Overview({ person }: { person: Profile }) {
  const { address } = person;
  const loaded = useLoad(async () => (address && !person.bare ? tagsOf(address) : null), [address, person.bare]);
  useEffect(() => void performance.mark('followpress:profile'), [person]);
  const to = (kind: Kind) => (tag: string) => href(['a', address, kind], { tags: tagQuery([tag]) });
  return (
    <div class="stack">
      <About person={person} />
      <Counts person={person} said={useKept(loaded) ?? undefined} />
      {address && <TopEight person={person} />}
      <Lists person={person} />
      {(loaded.state !== 'done' || loaded.value) && (
        <section class="columns wait" aria-busy={loaded.state === 'loading'}>
          <Show loaded={loaded}>
            {(said) =>
              said && (
                <>
                  <TagLinks name={words.received} tags={said.received.free} to={to('followers')} />
                  <TagLinks name={words.given} tags={said.given.free} to={to('following')} />
                </>
              )
            }
          </Show>
        </section>
      )}
      {address && <Badges person={person} />}
    </div>
  );
}
