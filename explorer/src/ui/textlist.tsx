// Texts of a profile by their keys: what leads somewhere is a link.

import { peopleTexts as words } from '../texts/accounts';
import { clip, type Text } from '../text';
import { linkOf, outside, type Link } from './links';
import { Long } from './long';

// Keys of texts are names that anybody may choose, such as those that all objects have.
const names = new Map(Object.entries(words.keys));
const folded = 8;

export function Outside({ link: { to, text, rest } }: { link: Link }) {
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

export function TextList({ texts: all }: { texts: readonly [string, string][] }) {
  return (
    <dl class="texts">
      {all.map(([name, text]) => (
        <Member key={name} name={name} text={text} />
      ))}
    </dl>
  );
}

/** The same below a summary, which hides them if they are many. */
export function FoldedTexts({ summary, texts }: { summary: Text; texts: readonly [string, string][] }) {
  if (!texts.length) {
    return null;
  }
  return (
    <details open={texts.length <= folded}>
      <summary>{summary}</summary>
      <TextList texts={texts} />
    </details>
  );
}
