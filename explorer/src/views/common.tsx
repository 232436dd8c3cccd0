// What two accounts have in common.

import { useId, useState } from 'preact/hooks';
import { peopleTexts as words } from '../accounttexts';
import { common, followBoth, profile, relation, type Profile, type Related, type State } from '../data/people';
import { ready, suggest, termOf } from '../data/search';
import { commonTexts } from '../latertexts';
import { go, href, type Href, type Place } from '../router';
import { clip, named, plain, type Text } from '../text';
import { number } from '../texts';
import { Failed, Loading, Show, useLoad } from '../ui/load';
import { Name, PersonLink } from '../ui/person';
import { Rows } from '../ui/rows';
import { relatedRow } from './people';

const rowHeight = 68;
const suggested = 8;
const row = (person: Related) => relatedRow(person);

const compared = (person: Profile, other: string, show?: string): Href =>
  href(['a', person.address, 'common', other], { show });

/* Choosing the other account */

async function friends(person: Profile): Promise<readonly Related[]> {
  const { page, found } = await relation(person, 'following', { sort: 'latest', tags: [], term: '' });
  return (await page(0, Math.min(found ?? 0, suggested))).filter(({ follows }) => follows);
}

function Choose({ person, text = '' }: { person: Profile; text?: string }) {
  const [typed, type] = useState(text);
  const id = useId();
  useLoad(ready, []); // suggestions are of what is there
  const hits = typed.trim() ? suggest(typed, suggested) : [];
  const submit = (event: Event) => {
    event.preventDefault();
    const term = termOf(typed);
    if (term) {
      go(compared(person, hits.find(({ name }) => [name, named(name)].some((one) => termOf(one) === term))?.address || term));
    }
  };
  return (
    <form class="asked" onSubmit={submit}>
      <input
        type="search"
        dir="auto"
        required
        value={typed}
        maxLength={255}
        list={id}
        aria-label={commonTexts.compare}
        placeholder={words.find}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        onInput={(event) => type(event.currentTarget.value)}
      />
      <datalist id={id}>
        {hits.map(({ address, name }) => (
          <option key={address} value={name.trim() ? named(name) : plain(address)} />
        ))}
      </datalist>
      <button type="submit" class="primary">
        {commonTexts.compareButton}
      </button>
    </form>
  );
}

function Chooser({ person }: { person: Profile }) {
  const loaded = useLoad(() => friends(person), [person.address]);
  return (
    <div class="stack tight text">
      <h2>{commonTexts.compare}</h2>
      <p class="quiet">{commonTexts.compareAbout}</p>
      <Choose person={person} />
      {loaded.state === 'done' && loaded.value.length > 0 && (
        <>
          <h3>{commonTexts.suggestions}</h3>
          <p class="row">
            {loaded.value.map((friend) => (
              <a key={friend.address} class="chip" href={compared(person, friend.address)}>
                <Name person={friend} />
              </a>
            ))}
          </p>
        </>
      )}
    </div>
  );
}

/* The comparison */

function Says({ a, state, b }: { a: Profile; state: State; b: Profile }) {
  return (
    <p>
      <strong>
        <Name person={a} />
      </strong>
      <span class={state === 'follows' ? 'good' : state === 'nothing' ? 'quiet' : 'bad'}>{commonTexts.states[state]}</span>
      <strong>
        <Name person={b} />
      </strong>
    </p>
  );
}

type Shown = 'following' | 'followers';

function People({ people, source, label }: { people: readonly Related[]; source: string; label: Text }) {
  return (
    <Rows
      label={label}
      source={source}
      total={people.length}
      height={rowHeight}
      page={async (offset, limit) => people.slice(offset, offset + limit)}
      row={row}
      empty={<p class="empty">{commonTexts.noneCommon}</p>}
    />
  );
}

function Comparison({ a, b, shown }: { a: Profile; b: Profile; shown: Shown }) {
  const inputs = [a.address, b.address];
  const following = useLoad(() => common(a, b), inputs);
  const followers = useLoad(() => followBoth(a, b), inputs);
  if (following.state === 'failed') {
    return <Failed error={following.error} retry={following.retry} />;
  }
  if (following.state === 'loading') {
    return <Loading />;
  }
  const { states, bothFollow } = following.value;
  const unknown = followers.state === 'done' && !followers.value;
  const link = (show: Shown, name: Text, count?: number) => (
    <a
      href={compared(a, b.address, show === 'following' ? '' : show)}
      aria-current={shown === show ? 'page' : undefined}
    >
      {name}
      {count !== undefined && <span class="count">{number(count)}</span>}
    </a>
  );
  const known = followers.state === 'done' ? (followers.value ?? undefined) : undefined;
  return (
    <>
      <div class="card">
        <Says a={a} state={states[0]} b={b} />
        <Says a={b} state={states[1]} b={a} />
      </div>
      <nav class="tabs" aria-label={words.common}>
        {link('following', commonTexts.bothFollow, bothFollow.length)}
        {!unknown && link('followers', commonTexts.followBoth, known?.length)}
      </nav>
      {shown === 'following' || unknown ? (
        <People people={bothFollow} source={inputs.join() + ' following'} label={commonTexts.bothFollow} />
      ) : (
        <Show loaded={followers}>
          {(people) => <People people={people ?? []} source={inputs.join() + ' followers'} label={commonTexts.followBoth} />}
        </Show>
      )}
    </>
  );
}

export function Common({ person, place }: { person: Profile; place: Place }) {
  const other = place.path[3];
  return other ? <With key={other} person={person} other={other} place={place} /> : <Chooser person={person} />;
}

function With({ person, other, place }: { person: Profile; other: string; place: Place }) {
  const loaded = useLoad(() => profile(other), [other]);
  const shown = place.query.get('show') === 'followers' ? 'followers' : 'following';
  return (
    <Show loaded={loaded}>
      {(found) => (
        <div class="stack tight">
          <div class="row between versus">
            {found && <PersonLink person={found} />}
            <a href={href(['a', person.address, 'common'])}>{commonTexts.another}</a>
          </div>
          {!found?.address ? (
            <>
              <p class="notice" role="alert">
                {words.aboutNobody(clip(other, 100))}
              </p>
              <Choose person={person} text={other} />
            </>
          ) : found.address === person.address ? (
            <p class="notice">{commonTexts.same}</p>
          ) : (
            <Comparison a={person} b={found} shown={shown} />
          )}
        </div>
      )}
    </Show>
  );
}
