// Whom an account or a list follows, and who follows it: searched, filtered and sorted, as many as there are.

import { useEffect, useRef, useState } from 'preact/hooks';
import { peopleTexts as words } from '../accounttexts';
import { relation, sorts, tagsIn } from '../data/people';
import type { Kind, Related, Relation, Sort, Subject } from '../data/people';
import { isWhole } from '../data/site';
import { tagQuery, tagsOf } from '../place';
import { go, href, type Href, type Place } from '../router';
import { clip, gap, plain, type Text } from '../text';
import { date, number } from '../texts';
import { Failed, Loading, useKept, useLoad } from '../ui/load';
import { PersonRow } from '../ui/person';
import { Rows } from '../ui/rows';

/** In CSS pixels. */
const rowHeight = 68;

/* A row */

function Marks({ person: { follows, blocks, mutes, back } }: { person: Related }) {
  const marks: [boolean | undefined, Text, string][] = back
    ? [
        [back.follows && follows, words.mutual, 'mark good'],
        [back.blocks, words.blocked, 'mark bad'],
        [back.mutes, words.muted, 'mark bad'],
        [blocks, words.blocks, 'mark bad'],
        [mutes, words.mutes, 'mark bad'],
      ]
    : [
        [blocks, words.blocked, 'mark bad'],
        [mutes, words.muted, 'mark bad'],
      ];
  return (
    <>
      {marks.map(
        ([is, name, kind]) =>
          is && (
            <span key={name} class={kind}>
              {name}
            </span>
          ),
      )}
    </>
  );
}

/** An account in a list, with what is known about it there. */
export function relatedRow(person: Related) {
  return (
    <PersonRow person={person} marks={<Marks person={person} />}>
      <span class="tags">
        {person.tags.slice(0, 4).map((tag, i) => (
          <span key={i} class="chip line">
            <bdi>{clip(tag, 40)}</bdi>
          </span>
        ))}
        {person.tags.length > 4 && <span class="quiet small">{words.moreOf(number(person.tags.length - 4))}</span>}
      </span>
      <span class="numbers quiet small num">
        {person.followers !== undefined && <span>{words.followersOf(person.followers, !person.back)}</span>}
        {person.added > 0 && (
          <>
            <span class="wordy">{words.since(date(person.added))}</span>
            <span class="brief">{date(person.added)}</span>
          </>
        )}
      </span>
    </PersonRow>
  );
}

/* What is wanted: it is in the address, so that it can be shared. */

interface Query {
  q: string;
  tags: readonly string[];
  sort: Sort;
}

const isSort = (text: string | null): text is Sort => sorts.includes(text as Sort);

function queryOf({ query }: Place, usual: Sort): Query {
  const sort = query.get('sort');
  return { q: query.get('q') ?? '', tags: tagsOf(query.get('tags') ?? ''), sort: isSort(sort) ? sort : usual };
}

const addressOf = (path: readonly string[], { q, tags, sort }: Query, usual: Sort): Href =>
  href(path, { q, tags: tagQuery(tags), sort: sort === usual ? '' : sort });

const shownTags = 12;
const pause = 200; // milliseconds without a keystroke before accounts are searched

interface FiltersProps {
  subject: Subject;
  kind: Kind;
  query: Query;
  usual: Sort;
  path: readonly string[];
}

function Term({ query, usual, path }: Omit<FiltersProps, 'subject' | 'kind'>) {
  const [typed, type] = useState(query.q);
  const sent = useRef(query.q);
  const now = useRef(query); // tags and the order may change before the term is sent
  now.current = query;
  useEffect(() => {
    if (query.q !== sent.current) {
      sent.current = query.q; // the reader went back
      type(query.q);
    }
  }, [query.q]);
  useEffect(() => {
    if (typed.trim() === sent.current) {
      return;
    }
    const timer = setTimeout(() => {
      sent.current = typed.trim();
      go(addressOf(path, { ...now.current, q: sent.current }, usual), true);
    }, pause);
    return () => clearTimeout(timer);
  }, [typed]);
  return (
    <input
      type="search"
      dir="auto"
      value={typed}
      maxLength={255}
      aria-label={words.find}
      placeholder={words.find}
      autocomplete="off"
      spellcheck={false}
      onInput={(event) => type(event.currentTarget.value)}
    />
  );
}

function TagFilter({ subject, kind, query, usual, path }: FiltersProps) {
  const loaded = useLoad(() => tagsIn(subject, kind), [subject.address, subject.list, kind]);
  const [all, setAll] = useState(false);
  const known = loaded.state === 'done' ? loaded.value : [];
  const missing = query.tags.filter((tag) => !known.some((other) => other.tag === tag));
  const tags = [...missing.map((tag) => ({ tag, count: 0 })), ...known];
  const shown = tags.filter(({ tag }, i) => all || i < shownTags || query.tags.includes(tag));
  const rest = tags.length - shown.length;
  const toggled = (tag: string) =>
    query.tags.includes(tag) ? query.tags.filter((other) => other !== tag) : [...query.tags, tag];
  return (
    <div class="filters" role="group" aria-label={words.byTag}>
      {shown.map(({ tag, count }) => (
        <button
          key={tag}
          type="button"
          class="chip"
          aria-pressed={query.tags.includes(tag)}
          onClick={() => go(addressOf(path, { ...query, tags: toggled(tag) }, usual), true)}
        >
          <bdi>{clip(tag, 40)}</bdi>
          {gap}
          {count > 0 && <span>{number(count)}</span>}
        </button>
      ))}
      {rest > 0 && (
        <button type="button" class="plain small" onClick={() => setAll(true)}>
          {words.moreTags(number(rest))}
        </button>
      )}
    </div>
  );
}

function Filters(props: FiltersProps & { orders: readonly Sort[] }) {
  const { query, usual, path, orders } = props;
  return (
    <div class="stack tight">
      <div class="asked">
        <Term query={query} usual={usual} path={path} />
        <select
          aria-label={words.sort}
          value={query.sort}
          onChange={(event) => {
            const sort = event.currentTarget.value;
            go(addressOf(path, { ...query, sort: isSort(sort) ? sort : usual }, usual), true);
          }}
        >
          {orders.map((sort) => (
            <option key={sort} value={plain(sort)}>
              {words.sorts[sort]}
            </option>
          ))}
        </select>
      </div>
      <TagFilter {...props} />
    </div>
  );
}

interface Found {
  relation: Relation;
  query: Query;
  orders: readonly Sort[];
}

interface Props {
  subject: Subject;
  kind: Kind;
  place: Place;
  /** The order that is not named in the address. */
  usual?: Sort;
}

export function Relations({ subject, kind, place, usual = 'latest' }: Props) {
  const query = queryOf(place, usual);
  const { path } = place;
  const tags = tagQuery(query.tags);
  const of = `${subject.isList ? '' : subject.address} ${subject.list} ${kind}`;
  const loaded = useLoad(async (): Promise<Found> => {
    const whole = await isWhole();
    const orders = sorts.filter((sort) => whole || sort !== 'followers');
    const sort = orders.includes(query.sort) ? query.sort : usual;
    return { relation: await relation(subject, kind, { sort, tags: query.tags, term: query.q }), query, orders };
  }, [of, query.q, tags, query.sort]);
  const found = useKept(loaded);
  const whole = useLoad(isWhole, []);
  if (loaded.state === 'failed') {
    return <Failed error={loaded.error} retry={loaded.retry} />;
  }
  if (whole.state === 'done' && !whole.value && kind === 'followers') {
    return <p class="empty">{words.unknownFollowers}</p>;
  }
  if (!found) {
    return <Loading />;
  }
  const { total, found: count, page } = found.relation;
  const isFiltered = !!found.query.q || found.query.tags.length > 0;
  const said = !isFiltered
    ? words.count(total)
    : count === undefined
      ? words.some(number(total))
      : words.found(number(count), number(total));
  return (
    <div class="stack tight">
      {(total > 0 || isFiltered) && (
        <Filters subject={subject} kind={kind} query={query} usual={usual} path={path} orders={found.orders} />
      )}
      {total > 0 && (
        <p class="row between quiet small">
          <span role="status">{loaded.state === 'loading' ? words.searching : said}</span>
          {isFiltered && <a href={addressOf(path, { ...query, q: '', tags: [] }, usual)}>{words.clear}</a>}
        </p>
      )}
      <Rows
        label={words[kind]}
        source={`${of} ${found.query.q} ${tagQuery(found.query.tags)} ${found.query.sort}`}
        total={count}
        height={rowHeight}
        page={page}
        row={relatedRow}
        empty={<p class="empty">{isFiltered ? words.noneFound : words.none[kind]}</p>}
      />
    </div>
  );
}
