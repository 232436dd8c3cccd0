// Whom an account or a list follows, and who follows it: searched, filtered and sorted, as many as there are.

import type { Children } from '../elements';
import { useCallback, useEffect, useRef, useState } from 'preact/hooks';
import { peopleTexts as words } from '../texts/accounts';
import { meaningful, relation, saidOf, shows, sorts } from '../data/people';
import type { Kind, Related, Relation, Said, Show, Sort, Subject } from '../data/people';
import { isWhole } from '../data/site';
import { hasTick } from '../data/ticks';
import { tagQuery, tagsOf } from '../place';
import { go, href, type Href, type Place } from '../router';
import { clip, gap, plain, type Text } from '../text';
import { date, number } from '../texts/first';
import { Later } from '../ui/later';
import { Failed, Loading, useKept, useLoad } from '../ui/load';
import { Legend, Marks } from '../ui/marks';
import { nameOf, PersonRow, short } from '../ui/person';
import { Rows } from '../ui/rows';
import { Says } from '../ui/says';

/** In CSS pixels. */
const rowHeight = 68;

const exported = async () => (await import('../ui/export')).Export;

/* A row */

/** An account in a list, with what is known about it there; of is the name of whom the list is of. */
export function relatedRow(person: Related, of?: Text) {
  return (
    <PersonRow person={person} marks={<Marks person={person} of={of} />}>
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
  show: Show;
}

const isSort = (text: string | null): text is Sort => sorts.includes(text as Sort);

function queryOf({ query }: Place, usual: Sort): Query {
  const sort = query.get('sort');
  const tags = tagsOf(query.get('tags') ?? '');
  // Who is blocked has a tag: to ask for that one is to ask for more than follows.
  const show = shows.find((one) => one === query.get('show')) ?? (tags.some((tag) => tag === 'block' || tag === 'mute') ? 'all' : 'follows');
  return { q: query.get('q') ?? '', tags: show === 'blocks' || show === 'mutes' ? [] : tags, sort: isSort(sort) ? sort : usual, show };
}

const addressOf = (path: readonly string[], { q, tags, sort, show }: Query, usual: Sort): Href =>
  href(path, { q, tags: tagQuery(tags), sort: sort === usual ? '' : sort, show: show === 'follows' ? '' : show });

const shownTags = 8;
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

function TagFilter({ said, query, usual, path }: FiltersProps & { said: Said }) {
  const [all, setAll] = useState(false);
  const top8 = said.top8.length > 0 ? [{ tag: 'top8', count: said.top8.length }] : [];
  const known = [...top8, ...said.free];
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
          class={meaningful.includes(tag) ? 'chip strong' : 'chip'}
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

interface Choices extends FiltersProps {
  orders: readonly Sort[];
  dated: boolean;
  total: number;
  /** What was found, and what is done with it. */
  children: Children;
}

/** On phones most of it is folded while nothing is chosen, so that rows begin near the top. */
function Filters(props: Choices) {
  const { subject, kind, query, usual, path, orders, dated, total, children } = props;
  const said = useKept(useLoad(() => saidOf(subject, kind), [subject.address, subject.list, kind]));
  const isChosen = !!query.q || query.tags.length > 0 || query.show !== 'follows' || query.sort !== usual;
  const [open, setOpen] = useState(isChosen);
  useEffect(() => setOpen((before) => before || isChosen), [isChosen]);
  return (
    <div class={open ? 'asking-for' : 'asking-for folded'}>
      <div class="asked">
        <Term query={query} usual={usual} path={path} />
        <Legend list />
        <button type="button" class="unfold" aria-expanded={open} onClick={() => setOpen(!open)}>
          {words.filters}
        </button>
        <select
          aria-label={words.sort}
          value={orders.includes(query.sort) ? query.sort : 'earliest'}
          onChange={(event) => {
            const sort = event.currentTarget.value;
            go(addressOf(path, { ...query, sort: isSort(sort) ? sort : usual }, usual), true);
          }}
        >
          {orders.map((sort) => (
            <option key={sort} value={plain(sort)}>
              {(dated ? words.sorts : words.undated[kind])[sort]}
            </option>
          ))}
        </select>
        {children}
      </div>
      {said && (
        <div class="filters">
          <Says kind={kind} said={said} total={total} show={query.show} choose={(show) => go(addressOf(path, { ...query, tags: [], show }, usual), true)} />
          {said.free.some(({ tag }) => hasTick(tag)) && <p class="notice small">{words.tickInTag}</p>}
          {query.show !== 'blocks' && query.show !== 'mutes' && <TagFilter {...props} said={said} />}
        </div>
      )}
    </div>
  );
}

interface Found {
  relation: Relation;
  query: Query;
  orders: readonly Sort[];
  dated: boolean;
}

interface Props {
  subject: Subject & { name?: string };
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
    const of = (sort: Sort) => relation(subject, kind, { sort, tags: query.tags, term: query.q, show: query.show });
    const known = sorts.filter((sort) => whole || sort !== 'followers');
    const sort = known.includes(query.sort) ? query.sort : usual;
    const found = await of(sort);
    // Where nothing says when it was added, nothing is the newest; but a list has an order.
    const orders = known.filter((one) => found.dated || kind === 'following' || one !== 'latest');
    return { relation: orders.includes(sort) || !found.total ? found : await of('earliest'), query, orders, dated: found.dated };
  }, [of, query.q, tags, query.sort, query.show]);
  const name = subject.isList ? undefined : nameOf({ name: subject.name ?? '' }) || short(subject.address);
  const row = useCallback((person: Related) => relatedRow(person, name), [name]);
  const [exporting, setExporting] = useState(false);
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
  const { total, shown, found: count, page } = found.relation;
  const { show } = found.query;
  const source = `${of} ${found.query.q} ${tagQuery(found.query.tags)} ${found.query.sort} ${show}`;
  const isFiltered = !!found.query.q || found.query.tags.length > 0;
  const said = !isFiltered
    ? words.count(count ?? shown ?? total)
    : count === undefined
      ? words.some(number(shown ?? total))
      : words.found(number(count), number(shown ?? total));
  return (
    <div class="stack tight">
      {(total > 0 || isFiltered) && (
        <Filters subject={subject} kind={kind} query={query} usual={usual} path={path} orders={found.orders} dated={found.dated} total={total}>
          {total > 0 && (
            <p class="row quiet small">
              <span role="status">{loaded.state === 'loading' ? words.searching : said}</span>
              {isFiltered && <a href={addressOf(path, { ...query, q: '', tags: [] }, usual)}>{words.clear}</a>}
              <button type="button" class="plain small" aria-expanded={exporting} onClick={() => setExporting(!exporting)}>
                {words.exported}
              </button>
            </p>
          )}
        </Filters>
      )}
      {exporting && <Later key={source} load={exported} given={{ subject, kind, relation: found.relation }} />}
      <Rows
        label={words[kind]}
        source={source}
        total={count}
        height={rowHeight}
        page={page}
        row={row}
        empty={<p class="empty">{isFiltered ? words.noneFound : show === 'blocks' || show === 'mutes' ? words.noShown[show][kind] : words.none[kind]}</p>}
      />
    </div>
  );
}
