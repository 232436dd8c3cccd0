// Whom an account followed at the end of a day, and who followed it.

import { useId, useState } from 'preact/hooks';
import { peopleTexts } from '../texts/accounts';
import { asOf, mostListed, period, type Period, type Then as Found } from '../data/history';
import { dateOf, dayOf, nextDay, timeOf, type Held } from '../data/ops';
import type { Kind, Profile } from '../data/people';
import { hasReports } from '../brand';
import { reports, reportURL } from '../data/reports';
import { thenTexts as words } from '../texts/later';
import { go, href, type Href, type Place } from '../router';
import { type Text } from '../text';
import { date, number } from '../texts/first';
import { Failed, Loading, Show, useKept, useLoad } from '../ui/load';
import { PersonRow } from '../ui/person';
import { Rows } from '../ui/rows';
import { Tabs } from '../ui/tabs';

const parts = ['all', 'came', 'left'] as const;
type Part = (typeof parts)[number];

interface Query {
  /** The beginning of the day. */
  day: number;
  kind: Kind;
  part: Part;
}

/** The days that one can choose: the first one ends within the period. */
const daysOf = ({ from, to }: Period) => ({ first: dayOf(from - 1), last: dayOf(to) });

const usual = 7 * 86_400_000; // this long before the last day

function queryOf({ query }: Place, span: Period): Query {
  const { first, last } = daysOf(span);
  const day = timeOf(query.get('day') ?? '');
  return {
    day: Number.isNaN(day) ? Math.max(first, last - usual) : Math.min(day, last),
    kind: query.get('of') === 'followers' ? 'followers' : 'following',
    part: parts.find((part) => part === query.get('show')) ?? 'all',
  };
}

const addressOf = ({ address }: Profile, { day, kind, part }: Query): Href =>
  href(['a', address, 'then'], { day: dateOf(day), of: kind === 'followers' ? kind : '', show: part === 'all' ? '' : part });

export function Then({ person, place }: { person: Profile; place: Place }) {
  const known = useLoad(period, []);
  return <Show loaded={known}>{(span) => (span ? <Chosen person={person} place={place} span={span} /> : <p class="empty">{words.unknown}</p>)}</Show>;
}

function Chosen({ person, place, span }: { person: Profile; place: Place; span: Period }) {
  const query = queryOf(place, span);
  const { first, last } = daysOf(span);
  const kind = (name: Kind) => (
    <a href={addressOf(person, { ...query, kind: name, part: 'all' })} aria-current={query.kind === name ? 'page' : undefined}>
      {peopleTexts[name]}
    </a>
  );
  return (
    <div class="stack tight">
      <Picker query={query} person={person} first={first} last={last} />
      <Tabs label={words.title}>
        {kind('following')}
        {kind('followers')}
      </Tabs>
      {query.day < first ? <Before day={query.day} first={first} /> : <Shown person={person} query={query} />}
      {hasReports && <Earlier first={first} />}
    </div>
  );
}

function Picker({ query, person, first, last }: { query: Query; person: Profile; first: number; last: number }) {
  const about = useId();
  const choose = ({ currentTarget: { value, validity } }: { currentTarget: HTMLInputElement }) => {
    const day = timeOf(value);
    // Browsers say each digit of a year that is typed.
    if (!Number.isNaN(day) && validity.valid && day !== query.day) {
      go(addressOf(person, { ...query, day }), true);
    }
  };
  return (
    <div class="row">
      <label class="row">
        {words.day}
        <input type="date" required value={dateOf(query.day)} min={dateOf(first)} max={dateOf(last)} aria-describedby={about} onChange={choose} />
      </label>
      <span id={about} class="quiet small">
        {words.days(date(first), date(last))}
      </span>
    </div>
  );
}

const mostReports = 366;

/** The days before the period that have a report, read when they are asked for. */
function Earlier({ first }: { first: number }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
      <summary>{words.earlier}</summary>
      {open && <Reports fits={(time) => dayOf(time) < first} />}
    </details>
  );
}

/** Links to reports of some days. */
function Reports({ fits }: { fits: (time: number) => boolean }) {
  const loaded = useLoad(reports, [], false);
  return (
    <Show loaded={loaded}>
      {(all) => {
        const of = all.filter(({ to }) => fits(Date.parse(to)));
        return of.length ? (
          <ul>
            {of.slice(0, mostReports).map((report) => (
              <li key={report.date}>
                <a href={reportURL(report)}>{words.report(date(report.from), date(report.to))}</a>
              </li>
            ))}
          </ul>
        ) : (
          <p>{words.noReport}</p>
        );
      }}
    </Show>
  );
}

/** A day of which the site does not say who followed whom: there may be a report of it. */
function Before({ day, first }: { day: number; first: number }) {
  return (
    <div class="empty">
      <p>{words.tooEarly(date(first))}</p>
      <Reports fits={(time) => dayOf(time) === day} />
    </div>
  );
}

function Shown({ person, query }: { person: Profile; query: Query }) {
  const { day, kind, part } = query;
  const before = nextDay(day);
  const loaded = useLoad(() => asOf(kind, person, before, nextDay), [kind, person.address, person.list, before]);
  const found = useKept(loaded);
  if (loaded.state === 'failed') {
    return <Failed error={loaded.error} retry={loaded.retry} />;
  }
  if (!found || loaded.state === 'loading') {
    return <Loading />;
  }
  const { now, then, came, left, all } = found;
  const figures: [Text, number][] = [[words.then, then], [words.now, now], [words.came, came.length], [words.left, left.length]];
  const link = (name: Part, text: Text, count: number) => (
    <a class="chip" href={addressOf(person, { ...query, part: name })} aria-current={part === name ? 'page' : undefined}>
      {text}
      <span>{number(count)}</span>
    </a>
  );
  return (
    <>
      {found.before !== before && <p class="notice">{words.cut(number(found.undone), date(found.before - 1))}</p>}
      {all === null && <p class="notice">{words.mixed}</p>}
      <dl class="figures">
        {figures.map(([name, count]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{number(count)}</dd>
          </div>
        ))}
      </dl>
      <p class="quiet small">{words.about}</p>
      <nav class="row" aria-label={words.which}>
        {link('all', words.all, then)}
        {link('came', words.came, came.length)}
        {link('left', words.left, left.length)}
      </nav>
      <People found={found} part={part} source={[person.address, kind, part, found.before].join(' ')} />
    </>
  );
}

function People({ found, part, source }: { found: Found; part: Part; source: string }) {
  const people = found[part];
  if (!people) {
    return people === undefined ? <p class="empty">{words.tooMany(number(mostListed))}</p> : null;
  }
  return (
    <Rows
      label={words[part]}
      source={source}
      total={people.length}
      height={68}
      page={async (offset, limit) => people.slice(offset, offset + limit)}
      row={row}
      empty={<p class="empty">{words.nobody[part]}</p>}
    />
  );
}

function row({ person, came, left }: Held) {
  return (
    <PersonRow person={person}>
      <span class="quiet small num moved">
        {came !== undefined && words.cameOn(date(came))}
        {left !== undefined && words.leftOn(date(left))}
      </span>
    </PersonRow>
  );
}
