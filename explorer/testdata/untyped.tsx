// What must not compile, for TestTypes: where the compiler finds no error after "expect", that is one.

import { named, plain, type Text } from '../src/text';
import { href } from '../src/place';
import { texts } from '../src/texts/first';
import { Heading } from '../src/ui/heading';
import { link } from '../src/ui/links';
import type { Person } from '../src/data/site';

export function Fine({ person: { name, address } }: { person: Person }) {
  const found = link(name);
  return (
    <p title={named(name)} aria-label={texts.searchMore(named(name))}>
      {plain(name)}
      {3}
      {null}
      {[plain(address)]}
      {texts.home}
      <a href={href(['a', address])}>{named(name)}</a>
      {found && <a href={found.to}>{found.text}</a>}
    </p>
  );
}

export function Wrong({ person, names }: { person: Person; names: string[] }) {
  return (
    <>
      {/* @ts-expect-error: a text of a profile */}
      <p>{person.name}</p>
      {/* @ts-expect-error: one among others */}
      <p>{texts.home}{person.name}</p>
      {/* @ts-expect-error: some */}
      <p>{names}</p>
      {/* @ts-expect-error: a part of one that may be shown */}
      <p>{plain(person.name).slice(1)}</p>
      {/* @ts-expect-error: one put together */}
      <p>{`${plain(person.name)} ${person.name}`}</p>
      {/* @ts-expect-error: anything */}
      <p>{person as object}</p>
      {/* @ts-expect-error: within our own text */}
      <p>{texts.searchTitle(person.name)}</p>
      {/* @ts-expect-error: a title */}
      <p title={person.name} />
      {/* @ts-expect-error: what is read out */}
      <p aria-label={person.name} />
      {/* @ts-expect-error: an alternative */}
      <img alt={person.name} />
      {/* @ts-expect-error: a suggestion */}
      <option value={person.name} />
      {/* @ts-expect-error: a heading, and the title of the page */}
      <Heading title={person.name} />
      <svg>
        {/* @ts-expect-error: in a picture */}
        <title>{person.name}</title>
      </svg>
      {/* @ts-expect-error: a link to what a profile says */}
      <a href={person.name} />
      {/* @ts-expect-error: a picture as a profile names it */}
      <img src={person.avatar} />
      {/* @ts-expect-error: markup */}
      <p dangerouslySetInnerHTML={{ __html: person.name }} />
    </>
  );
}

// @ts-expect-error: only functions of text.ts make them
export const made: Text = 'text';
