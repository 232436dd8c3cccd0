// The first view: what this is, its sizes, and the accounts that one may want to see first.

import { useLayoutEffect } from 'preact/hooks';
import { useMine } from '../data/mine';
import { first, hasHistory, site, type Person } from '../data/site';
import { href, type Place } from '../router';
import { date, number, sentences, texts } from '../texts/first';
import { Heading } from '../ui/heading';
import { Later } from '../ui/later';
import { Show, useLoad } from '../ui/load';
import { Followers, PersonLink } from '../ui/person';
import { Search } from '../ui/search';
import { Legend } from '../ui/slots';
import { part } from '../worker';

const rows = 10;

function Sizes({ counts }: { counts: Readonly<Record<string, number>> }) {
  return (
    <section aria-labelledby="sizes">
      <h2 id="sizes" class="hidden">
        {texts.sizesTitle}
      </h2>
      <dl class="figures">
        {(['accounts', 'lists', 'follows', 'names'] as const).map((name) => (
          <div key={name}>
            <dt>{texts.figures[name]}</dt>
            <dd>{counts[name] === undefined ? texts.wide : number(counts[name])}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

function Ranking({ people }: { people: readonly Person[] }) {
  useLayoutEffect(() => {
    performance.mark('followpress:usable');
  }, []);
  return (
    <ol class="ranking">
      {people.slice(0, rows).map((person, i) => (
        <li key={person.address}>
          <span class="quiet num" aria-hidden="true">
            {i + 1}
          </span>
          <PersonLink person={person} />
          {person.followers !== undefined && <Followers count={person.followers} />}
        </li>
      ))}
    </ol>
  );
}

const recent = async () => (await import('./recent')).Recent;
const yours = async () => (await import('./yours')).Yours;
const welcome = () => import('./welcome');
const latest = async () => (await welcome()).Latest;

export function Home({ place }: { place: Place }) {
  const loaded = useLoad(first, []);
  const root = useLoad(() => site.root(), []);
  const history = useLoad(hasHistory, [], false);
  const later = useLoad(() => part(welcome), [], false);
  const more = later.state === 'done' && later.value;
  const { me, viewed } = useMine();
  return (
    <div class="stack">
      <div class={me ? 'hero brief' : 'hero'}>
        <Heading title={texts.title}>{texts.welcome}</Heading>
        <p class="text quiet">{texts.what}</p>
        <p class="small quiet">{sentences(texts.asOf(root.state === 'done' ? date(root.value.as_of) : texts.wide), !me && texts.can)}</p>
        <Search place={place} />
        {!me && <div class="row tries">{more && <more.Tries />}</div>}
        {viewed.length > 0 && <div class="viewed">{more && <more.Viewed />}</div>}
      </div>
      {me && <div class="for-me">{more && <more.New />}</div>}
      {me && <Later load={yours} given={{}} />}
      <Sizes counts={root.state === 'done' ? root.value.counts : {}} />
      <div class="columns sections">
        <section aria-labelledby="most">
          <div class="row between">
            <h2 id="most">{texts.mostFollowed}</h2>
            <Legend />
            <a href={href(['boards', 'followers'])}>{texts.allBoards}</a>
          </div>
          <div class="ten">
            <Show loaded={loaded}>{({ people }) => <Ranking people={people} />}</Show>
          </div>
        </section>
        {history.state === 'done' && <Later load={history.value ? recent : latest} given={{}} />}
      </div>
    </div>
  );
}
