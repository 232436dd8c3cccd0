// The head of an account: who it is, and the tabs. Below other tabs than the profile it is a line.

import { useEffect, useRef, useState } from 'preact/hooks';
import { peopleTexts as words } from '../texts/accounts';
import type { Profile } from '../data/people';
import { shared } from '../data/shared';
import { usePicture } from '../pictures/picture';
import { href } from '../router';
import { clip, gap, type Text } from '../text';
import { number } from '../texts/first';
import { Address } from '../ui/copy';
import { Heading } from '../ui/heading';
import { Icon } from '../ui/icon';
import { Later } from '../ui/later';
import { useLoad } from '../ui/load';
import { Long } from '../ui/long';
import { Avatar, called } from '../ui/person';
import { Line } from '../ui/slots';
import { Tabs } from '../ui/tabs';
import { part as loadPart } from '../worker';

function ProfileTabs({ person, part }: { person: Profile; part: string | undefined }) {
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
  return (
    <Tabs label={words.tabs}>
      {tabs.map(([to, name, count]) => (
        <a key={name} href={href(to ? ['a', user, to] : ['a', user])} aria-current={part === to ? 'page' : undefined}>
          {name}
          {gap}
          {part && count !== undefined && <span class="count">{number(count)}</span>}
        </a>
      ))}
    </Tabs>
  );
}

/** How many follow the account, and whom it follows: its tabs have these numbers on other pages of it. */
function Counts({ person }: { person: Profile }) {
  return (
    <p class="row counts">
      {(['followers', 'following'] as const).map(
        (kind) =>
          person[kind] !== undefined && (
            <a key={kind} href={href(['a', person.address || person.name, kind])}>
              <strong>{number(person[kind])}</strong>
              {gap}
              {words[kind]}
            </a>
          ),
      )}
    </p>
  );
}

/** The picture above the head, if there is one that may be shown: without it there is nothing. */
function Header({ url }: { url: string }) {
  const box = useRef<HTMLDivElement>(null);
  const source = usePicture(url, box, 'header');
  return (
    <div ref={box} class="header">
      {source && <img src={source} alt="" />}
    </div>
  );
}

const dialog = async () => (await import('../ui/share')).ShareDialog;

/** Says where the page of this account is: what a phone's browser shares is that, and not the address of the explorer. */
function useCanonical(page: string | undefined): void {
  useEffect(() => {
    if (page) {
      const said = document.head.appendChild(Object.assign(document.createElement('link'), { rel: 'canonical', href: page }));
      return () => said.remove();
    }
    return undefined;
  }, [page]);
}

/** The button, and once it was pressed what it opens. */
function Share({ person }: { person: Profile }) {
  const [open, setOpen] = useState(false);
  const loaded = useLoad(() => shared(person), [person.address], false);
  const has = loaded.state === 'done' ? loaded.value : undefined;
  useCanonical(has?.page?.at);
  const to = has?.page?.at ?? new URL(href(['a', person.address]), location.href).href;
  return (
    <>
      <button type="button" class="share" aria-haspopup="dialog" aria-label={words.shareOf(called(person))} onClick={() => setOpen(true)}>
        <Icon name="share" size={18} />
        <span>{words.share}</span>
      </button>
      {open && loaded.state !== 'loading' && <Later load={dialog} given={{ person, has, to, close: () => setOpen(false) }} />}
    </>
  );
}

const parts = ['following', 'followers', 'common', 'graph', 'activity', 'then'] as const;

/** What the page is called: who it is about, and what of that. */
const titleOf = (person: Profile, part: string | undefined): Text => {
  const known = parts.find((one) => one === part);
  return known ? words.partOf(called(person), words[known]) : called(person);
};

export function Head({ person, part }: { person: Profile; part: string | undefined }) {
  const other = person.texts.find(([key]) => key === 'name')?.[1].trim();
  // Addresses are in lower case until this is there, and nothing is compared.
  const loaded = useLoad(() => loadPart(() => import('../ui/identity')), [], false);
  const identity = loaded.state === 'done' ? loaded.value : undefined;
  const isSmall = part !== undefined;
  return (
    <div class={isSmall ? 'head small-head' : 'head'}>
      {!isSmall && person.header && <Header url={person.header} />}
      <div class="who">
        <Avatar person={person} size={isSmall ? 36 : 96} />
        <div>
          <Heading title={titleOf(person, part)}>
            <bdi>{called(person)}</bdi>
          </Heading>
          {!isSmall && other && other !== person.name && (
            <p class="line quiet">
              <bdi>{clip(other, 200)}</bdi>
            </p>
          )}
          {isSmall ? null : person.address ? (
            <Address address={identity?.checksummed(person.address) ?? person.address} />
          ) : (
            <p class="quiet small">{words.unknownAddress}</p>
          )}
        </div>
        {person.address && <Share person={person} />}
      </div>
      {identity && <identity.Likeness person={person} />}
      {!isSmall && (
        <>
          <Counts person={person} />
          {person.description && (
            <p class="text description" dir="auto">
              <Long text={person.description} />
            </p>
          )}
          <Line person={person} />
        </>
      )}
      {person.address && <ProfileTabs person={person} part={part} />}
    </div>
  );
}
