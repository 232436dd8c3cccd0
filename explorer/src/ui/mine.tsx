// What accounts are to the reader: marks in rows, a line on profiles, and the choice of who the reader is.

import { useEffect } from 'preact/hooks';
import { become, forget, mine, useMine, view } from '../data/mine';
import type { Profile } from '../data/people';
import { acquainted, bitsFor, Blocks, BlocksMe, Follows, FollowsMe, know, Mutes, MutesMe, relationTo } from '../data/relations';
import { renewal, type Person } from '../data/site';
import { mineTexts as words } from '../texts/mine';
import { parse } from '../place';
import { href, type Href } from '../router';
import { useSettings } from '../settings';
import type { Text } from '../text';
import { Icon } from './icon';
import { useKept, useLoad } from './load';
import { Legend, Mark, type State } from './marks';
import { Avatar, called, Name } from './person';
import { slots } from './slots';

type Known = [bit: number, state: State, word: Text, name?: Text];

const against: Known[] = [
  [Blocks, 'blocks', words.youBlock],
  [Mutes, 'mutes', words.youMute],
  [BlocksMe, 'blocked', words.blocksYou],
  [MutesMe, 'muted', words.mutesYou],
];
const follows: Known[] = [
  [FollowsMe, 'followed', words.followsYou],
  [Follows, 'follows', words.youFollow],
];
const mutual: Known = [Follows | FollowsMe, 'mutual', words.mutual, words.mutualWith];

const marksOf = (bits: number, all: readonly Known[]): Known[] => all.filter(([bit]) => (bits & bit) === bit);

/** The bits that a row does not say by being where it is: in a list of the reader's own account. */
function hidden(me: Person): number {
  const [first, user, part] = parse(location.hash).path;
  const isMine = first === 'a' && (user === me.address || user?.toLowerCase() === me.name.toLowerCase());
  return !isMine ? 0 : part === 'following' ? Follows | Blocks | Mutes : part === 'followers' ? -1 : 0;
}

slots.Legend = Legend;
slots.Marks = function Marks({ address }) {
  const { me } = mine();
  if (!me) {
    return null;
  }
  const bits = bitsFor(address) & ~hidden(me);
  if (address === me.address) {
    return <Mark mine state="you" word={words.you} />;
  }
  const [first] = marksOf(bits, [...against, mutual, ...follows]);
  return first ? <Mark mine state={first[1]} word={first[2]} name={first[3]} /> : null;
};

/* On a profile */

const faces = 3;

function Relation({ me, person }: { me: Person; person: Profile }) {
  const inputs = [me.address, person.address];
  const said = useLoad(() => relationTo(person), inputs);
  const both = useKept(useLoad(() => acquainted(person), inputs, false)); // too much for each round of a live site
  const bits = useKept(said);
  if (bits === undefined) {
    return said.state === 'loading' ? <span class="quiet small" aria-busy="true">{words.reading}</span> : null;
  }
  const marks = marksOf(bits, [...against, ...follows]);
  return (
    <>
      {marks.map(([bit, state, word]) => (
        <a key={state} href={href(['a', me.address, bit > Mutes ? 'followers' : 'following'])}>
          <Mark mine state={state} word={word} />
        </a>
      ))}
      {!marks.length && <span class="quiet small">{words.stranger}</span>}
      {both && both.people.length > 0 && (
        <a class="known small" href={href(['a', person.address, 'known'])}>
          <span class="faces">
            {both.people.slice(0, faces).map((one) => (
              <Avatar key={one.address} person={one} size={24} />
            ))}
          </span>
          {words.known(both.people.length, both.more)}
        </a>
      )}
    </>
  );
}

slots.Line = function Line({ person }) {
  const { me, accounts } = useMine();
  const { viewed } = useSettings();
  const { address } = person;
  useEffect(() => {
    if (viewed && address && !mine().accounts.some((one) => one.address === address)) {
      view(person);
    }
  }, [viewed]);
  if (!address) {
    return null;
  }
  if (me?.address === address) {
    return (
      <>
        <Mark mine state="you" word={words.thisIsYou} />
        <button type="button" class="plain small" onClick={() => forget(person)}>
          {words.forget}
        </button>
      </>
    );
  }
  return (
    <>
      {me && <Relation me={me} person={person as Profile} />}
      <button type="button" class={me ? 'plain small' : 'small'} title={words.about} onClick={() => become(person)}>
        {words.thisIsMe}
      </button>
      {!me && !accounts.length && <span class="quiet small">{words.about}</span>}
    </>
  );
};

/* Who the reader is */

/** The way to the reader's own profile. What others say of it is read meanwhile. */
export function Me() {
  const { me } = useMine();
  useEffect(() => void know(), [me?.address, renewal.turn]);
  return me ? (
    <a class="me" href={href(['a', me.address])} title={called(me)}>
      <Avatar person={me} size={28} />
      <span class="hidden">{words.meAs(called(me))}</span>
    </a>
  ) : null;
}

const profileOf = (person: Person): Href => href(['a', person.address]);

/** All accounts of the reader, one of which they are. */
export function Accounts() {
  const { me, accounts } = useMine();
  return (
    <fieldset class="stack tight">
      <legend>{words.accounts}</legend>
      {accounts.map((person) => (
        <div key={person.address} class="row between account-of">
          <label class="field">
            <input type="radio" name="me" checked={person.address === me?.address} onChange={() => become(person)} />
            <Avatar person={person} size={24} />
            <Name person={person} />
          </label>
          <a class="small" href={profileOf(person)}>
            {words.profile}
          </a>
          <button type="button" class="plain icon" aria-label={words.forgetOf(called(person))} title={words.forget} onClick={() => forget(person)}>
            <Icon name="close" size={16} />
          </button>
        </div>
      ))}
      <p class="quiet small">{accounts.length ? words.aboutAccounts : words.noAccounts}</p>
    </fieldset>
  );
}
