// What the start shows after the rest: what is new for the reader, ways on, and who followed whom.

import { fresh, type Fresh } from '../data/visits';
import { become, forgetViewed, useMine } from '../data/mine';
import { instead, latestFollows, samplesOf, type Instead } from '../data/latest';
import { first, site, top, type Person } from '../data/site';
import { startTexts as words } from '../texts/mine';
import { go, href } from '../router';
import { plain, type Text } from '../text';
import { date, number } from '../texts/first';
import { Show, useKept, useLoad } from '../ui/load';
import { Avatar, called, Name, PersonLink } from '../ui/person';

function Chip({ person }: { person: Person }) {
  return (
    <a class="chip face" href={href(['a', person.address])}>
      <Avatar person={person} size={20} />
      <Name person={person} />
    </a>
  );
}

/* Ways on */

const samples = 3;

/** For whoever knows nobody here. */
export function Tries() {
  const people = useKept(useLoad(first, []))?.people;
  if (!people?.length) {
    return null;
  }
  const random = async () => {
    const all = (await top()).people;
    const one = all[Math.floor(Math.random() * all.length)];
    if (one) {
      go(href(['a', one.address || one.name]));
    }
  };
  const found = samplesOf(people, samples);
  return (
    <>
      {found.length > 0 && <span class="quiet small">{words.try}</span>}
      {found.map((word) => (
        <a key={word} class="chip" href={href(['search'], { q: word })}>
          <bdi>{plain(word)}</bdi>
        </a>
      ))}
      <button type="button" class="chip" onClick={() => void random()}>
        {words.random}
      </button>
    </>
  );
}

const shownViewed = 6;

export function Viewed() {
  const { viewed } = useMine();
  return viewed.length ? (
    <section class="row" aria-labelledby="viewed">
      <h2 id="viewed" class="quiet small">
        {words.viewed}
      </h2>
      {viewed.slice(0, shownViewed).map((person) => (
        <Chip key={person.address} person={person} />
      ))}
      <button type="button" class="plain small" onClick={forgetViewed}>
        {words.clear}
      </button>
    </section>
  ) : null;
}

/* What is new for the reader */

const shownNew = 6;

function Group({ people, name }: { people: readonly Person[]; name: Text }) {
  return people.length ? (
    <div class="row">
      <h3>{name}</h3>
      {people.slice(0, shownNew).map((person) => (
        <Chip key={person.address} person={person} />
      ))}
      {people.length > shownNew && <span class="quiet small">{words.more(number(people.length - shownNew))}</span>}
    </div>
  ) : null;
}

function Found({ me, found: { since, isFirst, news, more, counted, history } }: { me: Person; found: Fresh }) {
  if (since === undefined) {
    return <p class="quiet small">{words.firstVisit}</p>;
  }
  const groups = [news.gained, news.lost, news.against, news.others];
  const isNone = !counted.length && groups.every(({ length }) => !length);
  const names = [words.gained, words.lost, words.against, words.others];
  return (
    <>
      <p class="quiet small">{(isFirst ? words.lately : words.since)(date(since))}</p>
      {groups.map((people, i) => {
        const name = names[i];
        return name && <Group key={i} people={people} name={name(people.length, more)} />;
      })}
      {counted.map(([kind, then, now]) => (
        <p key={kind}>{words.counted[kind](number(then), number(now))}</p>
      ))}
      {isNone && <p>{words.nothing}</p>}
      <p>
        {history ? (
          <a href={href(['a', me.address, 'activity'], { of: 'others' })}>{words.allNews}</a>
        ) : (
          <a href={href(['a', me.address, 'followers'])}>{words.yourFollowers}</a>
        )}
      </p>
    </>
  );
}

function For({ me }: { me: Person }) {
  const loaded = useLoad(() => fresh(me), [me.address], false);
  return <Show loaded={loaded}>{(found) => <Found me={me} found={found} />}</Show>;
}

export function New() {
  const { me, accounts } = useMine();
  return me ? (
    <section class="card new" aria-labelledby="new">
      <div class="row between">
        <h2 id="new">{words.newFor}</h2>
        {accounts.length > 1 ? (
          <select
            aria-label={words.switch}
            value={me.address}
            onChange={(event) => {
              const chosen = accounts.find(({ address }) => address === event.currentTarget.value);
              if (chosen) {
                become(chosen);
              }
            }}
          >
            {accounts.map((person) => (
              <option key={person.address} value={plain(person.address)}>
                {called(person)}
              </option>
            ))}
          </select>
        ) : (
          <PersonLink brief person={me} />
        )}
      </div>
      <For key={me.address} me={me} />
    </section>
  ) : null;
}

/* Who followed whom */

const minute = 60_000;
const steps: [unit: keyof typeof words.ago, length: number][] = [
  ['year', 365 * 1440 * minute],
  ['month', 30 * 1440 * minute],
  ['day', 1440 * minute],
  ['hour', 60 * minute],
  ['minute', minute],
];

/** How long ago, in as few letters as say it. */
function ago(passed: number): Text {
  const [unit, length] = steps.find((step) => passed >= step[1]) ?? (['minute', minute] as const);
  return words.ago[unit](number(Math.max(0, Math.floor(passed / length))));
}

function Other({ board, rows }: Instead) {
  const isTop = board === 'top8';
  return (
    <>
      <h2 id="latest">
        <a href={href(['boards', board])}>{isTop ? words.top8 : words.following}</a>
      </h2>
      <ul class="ranking">
        {rows.map((person) => (
          <li key={person.address}>
            <PersonLink person={person} />
            <span class="quiet num">
              {number(person.counts[board] ?? 0)}
              <span class="hidden">{isTop ? words.top8Of : words.followingOf}</span>
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

async function last() {
  const [follows, { as_of }] = await Promise.all([latestFollows(), site.root()]);
  return { follows, to: Date.parse(as_of), other: follows.length ? null : await instead() };
}

export function Latest() {
  const loaded = useLoad(last, []);
  return (
    <section class="latest" aria-labelledby="latest">
      <Show loaded={loaded}>
        {({ follows, to, other }) =>
          follows.length ? (
            <>
              <h2 id="latest">{words.latest}</h2>
              <ul class="acts">
                {follows.map(({ actor, person, added }) => (
                  <li key={person.address} class="act both">
                    <PersonLink brief person={actor} />
                    <span class="what quiet small">{words.follows}</span>
                    <PersonLink brief person={person} />
                    <time class="quiet small num" dateTime={new Date(added).toISOString()} title={date(added)}>
                      {ago(to - added)}
                    </time>
                  </li>
                ))}
              </ul>
              <p class="quiet small">{words.agesFrom(date(to))}</p>
            </>
          ) : (
            other && <Other {...other} />
          )
        }
      </Show>
    </section>
  );
}
