// An account: its head with tabs, and its profile.

import type { Children } from '../elements';
import type { ComponentType } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { peopleTexts as words } from '../accounttexts';
import { badges, distribution, profile, tagsOf, type Event, type Kind, type Profile, type Tags } from '../data/people';
import { tagQuery } from '../place';
import { usePicture } from '../pictures/picture';
import { href, type Href, type Place } from '../router';
import { clip, gap, plain, type Text } from '../text';
import { number, percent, texts } from '../texts';
import { Address } from '../ui/copy';
import { Bars } from '../ui/distribution';
import { Heading } from '../ui/heading';
import { link, linkOf, outside, type Link } from '../ui/links';
import { Later } from '../ui/later';
import { Show, useKept, useLoad } from '../ui/load';
import { Avatar, called } from '../ui/person';
import { Long } from '../ui/long';
import { Line } from '../ui/slots';
import { Relations } from './people';

/** The user of a place of an account, which may also be named without `a`. */
const userOf = ({ path: [first = '', second = ''] }: Place): string => (first === 'a' ? second : first);

/** What is shown of the account, by the segment after it. */
const partOf = ({ path }: Place): string | undefined => path[path[0] === 'a' ? 2 : 1];

/** Views of other modules, which load with what they need, by the segment after the account. */
const later: Record<string, () => Promise<ComponentType<{ person: Profile; place: Place }>>> = {
  common: async () => (await import('./common')).Common,
  activity: async () => (await import('./activity')).Activity,
  then: async () => (await import('./then')).Then,
  graph: async () => (await import('./neighbourhood')).Neighbourhood,
  known: async () => (await import('./known')).Known,
};

/* The head */

function Header({ url, address }: { url: string; address: string }) {
  const box = useRef<HTMLDivElement>(null);
  const source = usePicture(url, 'banner', box);
  const hue = parseInt(address.slice(2, 8), 16) % 360 || 210;
  return (
    <div ref={box} class="banner" style={{ '--hue': hue }}>
      {source && <img src={source} alt="" />}
    </div>
  );
}

function Tabs({ person, part }: { person: Profile; part: string | undefined }) {
  const user = person.address || person.name;
  const tabs: (readonly [part: string | undefined, name: Text, count?: number])[] = [
    [undefined, words.profile],
    ['following', words.following, person.following],
    ...(person.whole ? [['followers', words.followers, person.followers] as const] : []),
    ['common', words.common],
    ['graph', words.graph],
  ];
  if (person.history) {
    tabs.push(['activity', words.activity], ['then', words.then]);
  }
  // On a phone the current tab may be beyond the edge.
  const nav = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const [bar, tab] = [nav.current, nav.current?.querySelector<HTMLElement>('[aria-current]')];
    if (bar && tab) {
      bar.scrollLeft = tab.offsetLeft - (bar.clientWidth - tab.offsetWidth) / 2;
    }
  }, [part]);
  return (
    <nav ref={nav} class="tabs" aria-label={words.tabs}>
      {tabs.map(([to, name, count]) => (
        <a key={name} href={href(to ? ['a', user, to] : ['a', user])} aria-current={part === to ? 'page' : undefined}>
          {name}
          {count !== undefined && <span class="count">{number(count)}</span>}
        </a>
      ))}
    </nav>
  );
}

const parts = ['following', 'followers', 'common', 'graph', 'activity', 'then'] as const;

/** What the page is called: who it is about, and what of that. */
const titleOf = (person: Profile, part: string | undefined): Text => {
  const known = parts.find((one) => one === part);
  return known ? words.partOf(called(person), words[known]) : called(person);
};

function Head({ person, part }: { person: Profile; part: string | undefined }) {
  const other = person.texts.find(([key]) => key === 'name')?.[1].trim();
  return (
    <div class="head">
      <Header url={person.header} address={person.address} />
      <div class="who">
        <Avatar person={person} size={96} />
        <div>
          <Heading title={titleOf(person, part)}>
            <bdi>{called(person)}</bdi>
          </Heading>
          {other && other !== person.name && (
            <p class="line quiet">
              <bdi>{clip(other, 200)}</bdi>
            </p>
          )}
          {person.address ? <Address address={person.address} /> : <p class="quiet small">{words.unknownAddress}</p>}
        </div>
      </div>
      <Line person={person} />
      {person.address && <Tabs person={person} part={part} />}
    </div>
  );
}

/* The profile */

// Keys of texts are names that anybody may choose, such as those that all objects have.
const names = new Map(Object.entries(words.keys));

function Outside({ link: { to, text, rest } }: { link: Link }) {
  return (
    <a href={to} {...outside} dir="ltr">
      {text}
      {rest && <span class="quiet">{rest}</span>}
    </a>
  );
}

function Member({ name, text }: { name: string; text: string }) {
  const found = text.length < 2000 ? linkOf(name, text) : undefined;
  return (
    <div>
      <dt>
        <bdi>{names.get(name) ?? clip(name, 60)}</bdi>
      </dt>
      <dd>{found ? <Outside link={found} /> : <Long text={text} most={200} />}</dd>
    </div>
  );
}

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
const folded = 8;

function Texts({ summary, texts: all }: { summary: Text; texts: [string, string][] }) {
  if (!all.length) {
    return null;
  }
  return (
    <details open={all.length <= folded}>
      <summary>{summary}</summary>
      <dl class="texts">
        {all.map(([name, text]) => (
          <Member key={name} name={name} text={text} />
        ))}
      </dl>
    </details>
  );
}

function About({ person }: { person: Profile }) {
  const known = main.flatMap((name) => person.texts.filter(([key]) => key === name));
  const others = person.texts.filter(([key]) => !main.includes(key) && key !== 'name');
  const chains = person.chains.filter(([, address]) => address.toLowerCase() !== person.address);
  if (!person.description && !known.length && !others.length && !chains.length) {
    return person.bare ? <p class="notice">{words.bare}</p> : null;
  }
  return (
    <section class="stack tight" aria-label={words.about}>
      {person.description && (
        <p class="text description" dir="auto">
          <Long text={person.description} />
        </p>
      )}
      {known.length > 0 && (
        <dl class="texts">
          {known.map(([name, text]) => (
            <Member key={name} name={name} text={text} />
          ))}
        </dl>
      )}
      <Texts summary={words.records(number(others.length))} texts={others} />
      <Texts summary={words.chains(number(chains.length))} texts={chains} />
    </section>
  );
}

function Place({ kind, count }: { kind: Kind; count: number }) {
  const loaded = useLoad(() => distribution(kind, count), [kind, count]);
  const known = useKept(loaded);
  return (
    <div class="place">
      {known && (
        <>
          <Bars distribution={known} count={count} />
          <p class="quiet small">{words.below[kind](percent(known.below), number(known.accounts))}</p>
        </>
      )}
    </div>
  );
}

const isKind = (board: string): board is Kind => board === 'following' || board === 'followers';

function Ranks({ person }: { person: Profile }) {
  if (!person.ranks.length) {
    return null;
  }
  return (
    <section class="stack tight">
      <h2>{words.ranks}</h2>
      <ul class="ranks">
        {person.ranks.map(([board, rank]) => {
          const count = isKind(board) ? person[board] : undefined;
          return (
            <li key={board} class={count ? 'card wide' : 'card'}>
              <p class="row between">
                <span class="quiet small">{words.boards[board]}</span>
                {count !== undefined && <span class="num">{number(count)}</span>}
              </p>
              {person.whole || isKind(board) ? (
                <a class="rank" href={href(['boards', board])}>
                  {words.rank(number(rank))}
                </a>
              ) : (
                <p class="rank">{words.rank(number(rank))}</p>
              )}
              {isKind(board) && count ? <Place kind={board} count={count} /> : null}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

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

function AllTags({ person }: { person: Profile }) {
  const { address } = person;
  const loaded = useLoad(() => tagsOf(address), [address]);
  if (loaded.state === 'done' && !loaded.value) {
    return null;
  }
  const to = (kind: Kind) => (tag: string) => href(['a', address, kind], { tags: tagQuery([tag]) });
  return (
    <section class="columns wait" aria-busy={loaded.state === 'loading'}>
      <Show loaded={loaded}>
        {(tags) =>
          tags && (
            <>
              <TagLinks name={words.received} tags={tags.received} to={to('followers')} />
              <TagLinks name={words.given} tags={tags.given} to={to('following')} />
            </>
          )
        }
      </Show>
    </section>
  );
}

function Badge({ event }: { event: Event }) {
  const box = useRef<HTMLSpanElement>(null);
  const source = usePicture(event.image, 'avatar', box);
  const to = link(event.url);
  return (
    <li class="badge card">
      <span ref={box} class={source ? 'shown' : 'blank'} aria-hidden="true">
        {source && <img src={source} alt="" width={72} height={72} />}
      </span>
      <div>
        <bdi>{clip(event.name || event.id, 80)}</bdi>
        {to && (
          <p class="small">
            <Outside link={{ ...to, rest: '' }} />
          </p>
        )}
        <p class="quiet small">{clip(event.date, 40)}</p>
        <p class="quiet small line">
          <bdi>{clip(event.place, 100)}</bdi>
        </p>
      </div>
    </li>
  );
}

function Badges({ person }: { person: Profile }) {
  const loaded = useLoad(() => badges(person), [person.address]);
  if (loaded.state === 'loading') {
    return null; // it is the last part, so that nothing moves
  }
  return (
    <Show loaded={loaded}>
      {(all) =>
        all.length > 0 && (
          <section class="stack tight">
            <h2>{words.badges(number(all.length))}</h2>
            <ul class="columns">
              {all.map((event, i) => (
                <Badge key={i} event={event} />
              ))}
            </ul>
          </section>
        )
      }
    </Show>
  );
}

function Overview({ person }: { person: Profile }) {
  useEffect(() => void performance.mark('followpress:profile'), [person]);
  return (
    <div class="stack">
      <About person={person} />
      <Ranks person={person} />
      <Lists person={person} />
      {person.address && !person.bare && <AllTags person={person} />}
      {person.address && <Badges person={person} />}
    </div>
  );
}

/* The account */

function Nobody({ user }: { user: string }) {
  return (
    <div class="empty">
      <Heading title={words.nobody} />
      <p>{words.aboutNobody(clip(user, 100))}</p>
      <a href={href([])}>{texts.home}</a>
    </div>
  );
}

function Part({ person, part, place }: { person: Profile; part: string | undefined; place: Place }): Children {
  const load = part !== undefined && Object.hasOwn(later, part) ? later[part] : undefined;
  if (load) {
    const path = ['a', person.address, ...place.path.slice(place.path[0] === 'a' ? 2 : 1)];
    return <Later key={part} load={load} given={{ person, place: { ...place, path } }} />;
  }
  if (part === 'following' || part === 'followers') {
    return <Relations key={part} subject={person} kind={part} place={place} />;
  }
  return <Overview person={person} />;
}

/** An account and what is around it. */
export function Account({ place }: { place: Place }) {
  const user = userOf(place);
  const loaded = useLoad(() => profile(user), [user]);
  const part = partOf(place);
  return (
    <Show loaded={loaded}>
      {(person) =>
        person ? (
          <div class="stack">
            <Head person={person} part={part} />
            <Part person={person} part={part} place={place} />
          </div>
        ) : (
          <Nobody user={user} />
        )
      }
    </Show>
  );
}
