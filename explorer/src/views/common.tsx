// What two accounts have in common.

import { peopleTexts as words } from '../texts/accounts';
import { useMine } from '../data/mine';
import { common, followBoth, profile, relation, type Profile, type Related, type State } from '../data/people';
import { termOf } from '../data/search';
import { commonTexts } from '../texts/later';
import { go, href, type Href, type Place } from '../router';
import { clip, type Text } from '../text';
import { number, texts } from '../texts/first';
import { useTitle } from '../ui/heading';
import { Failed, Loading, Show, useLoad } from '../ui/load';
import { called, Name, PersonLink } from '../ui/person';
import { Rows } from '../ui/rows';
import { Chooser } from '../ui/search';
import { Tabs } from '../ui/tabs';
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

function Choose({ person, text }: { person: Profile; text?: string }) {
  return (
    <Chooser
      id="others"
      label={commonTexts.compare}
      hint={texts.searchFor}
      text={text}
      chosen={(other) => go(compared(person, other.address || other.name))}
      nobody={(typed) => go(compared(person, termOf(typed)))}
    />
  );
}

function Choosing({ person }: { person: Profile }) {
  const loaded = useLoad(() => friends(person), [person.address]);
  return (
    <div class="stack tight text choosing">
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
  useTitle(commonTexts.title(called(a), called(b)));
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
      <Tabs label={words.common}>
        {link('following', commonTexts.bothFollow, bothFollow.length)}
        {!unknown && link('followers', commonTexts.followBoth, known?.length)}
      </Tabs>
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
  const { path, query } = place;
  const { me } = useMine();
  const other = path[3] ?? (query.has('with') || me?.address === person.address ? undefined : me?.address);
  return other ? <With key={other} person={person} other={other} place={place} /> : <Choosing person={person} />;
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
            <a href={href(['a', person.address, 'common'], { with: 'another' })}>{commonTexts.another}</a>
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
