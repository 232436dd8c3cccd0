// What an account did lately, and what was done to it, day by day.

import { useState } from 'preact/hooks';
import { peopleTexts } from '../texts/accounts';
import { activity, period, type Activity as Found, type Period } from '../data/history';
import { actions, byDay, type Action, type Day, type Side } from '../data/ops';
import type { Profile } from '../data/people';
import { actTexts as words } from '../texts/later';
import { go, href, type Href, type Place } from '../router';
import { date, number } from '../texts/first';
import { Act } from '../ui/acts';
import { Failed, Loading, Show, useKept, useLoad } from '../ui/load';
import { called } from '../ui/person';
import { Tabs } from '../ui/tabs';

/** So many entries are shown at first, and more each time that they are asked for. */
const page = 100;

const isAction = (name: string): name is Action => actions.includes(name as Action);

interface Query {
  side: Side;
  /** No action: all of them. */
  only: readonly Action[];
}

function queryOf({ query }: Place): Query {
  const only = (query.get('only') ?? '').split(',').filter(isAction);
  return { side: query.get('of') === 'others' ? 'to' : 'by', only };
}

const addressOf = ({ address }: Profile, { side, only }: Query): Href =>
  href(['a', address, 'activity'], { of: side === 'to' ? 'others' : '', only: only.join() });

export function Activity({ person, place }: { person: Profile; place: Place }) {
  const known = useLoad(period, []);
  const query = queryOf(place);
  const side = (name: Side) => (
    <a href={addressOf(person, { ...query, side: name })} aria-current={query.side === name ? 'page' : undefined}>
      {words.sides[name](called(person))}
    </a>
  );
  return (
    <Show loaded={known}>
      {(span) =>
        span ? (
          <div class="stack tight">
            <Tabs label={words.title}>
              {side('by')}
              {side('to')}
            </Tabs>
            <Filter person={person} query={query} />
            <Entries key={`${person.address} ${query.side}`} person={person} query={query} span={span} />
          </div>
        ) : (
          <p class="empty">{words.unknown}</p>
        )
      }
    </Show>
  );
}

function Filter({ person, query }: { person: Profile; query: Query }) {
  const { only } = query;
  const toggled = (action: Action) => actions.filter((one) => only.includes(one) !== (one === action));
  return (
    <div class="filters" role="group" aria-label={words.filter}>
      {actions.map((action) => (
        <button
          key={action}
          type="button"
          class="chip"
          aria-pressed={only.includes(action)}
          onClick={() => go(addressOf(person, { ...query, only: toggled(action) }), true)}
        >
          {words.kinds[action]}
        </button>
      ))}
    </div>
  );
}

function Entries({ person, query: { side, only }, span }: { person: Profile; query: Query; span: Period }) {
  const [shards, setShards] = useState(1);
  const [count, setCount] = useState(page);
  const loaded = useLoad(() => activity(side, person, shards), [side, person.address, person.list, shards]);
  const found = useKept(loaded);
  if (loaded.state === 'failed') {
    return <Failed error={loaded.error} retry={loaded.retry} />;
  }
  if (!found) {
    return <Loading />;
  }
  const fitting = found.entries.filter(({ action }) => !only.length || only.includes(action));
  // It is not disabled while more is read, so that it keeps the focus.
  const more = () => {
    if (loaded.state === 'loading') {
      return;
    }
    setCount(count + page);
    if (fitting.length < count + page && !found.ended) {
      setShards(shards + 1);
    }
  };
  return (
    <>
      <p class="quiet small">{words.period(words.minute(span.from), words.minute(span.to))}</p>
      <p class="quiet small" role="status">
        {loaded.state === 'loading' ? words.reading : said(found, Math.min(count, fitting.length), fitting.length)}
      </p>
      {byDay(fitting.slice(0, count)).map((one) => (
        <OneDay key={one.day} of={one} side={side} />
      ))}
      {!fitting.length && <p class="empty">{!found.total ? (side === 'by' && !person.list ? peopleTexts.noPrimary : words.nothing) : words.noneFits}</p>}
      {(fitting.length > count || !found.ended) && (
        <button type="button" class="older" aria-disabled={loaded.state === 'loading'} onClick={more}>
          {words.older}
        </button>
      )}
    </>
  );
}

const said = ({ entries, total, ended }: Found, shown: number, fitting: number) =>
  ended ? words.count(number(shown), number(fitting), number(total)) : words.countOf(number(shown), number(fitting), number(entries.length), number(total));

function OneDay({ of: { day, entries }, side }: { of: Day; side: Side }) {
  return (
    <section class="stack tight" aria-labelledby={`day-${day}`}>
      <h2 id={`day-${day}`} class="day">
        {date(day)}
      </h2>
      <ul class="acts">
        {entries.map((entry, i) => (
          <Act key={i} entry={entry} {...(side === 'by' ? { about: entry.person } : { actor: entry.person })} when={words.time(entry.time)} />
        ))}
      </ul>
    </section>
  );
}
