// States of accounts in rows: pictures, each with a short word where a row has room for it, and what they mean.

import { markTexts as words } from '../texts/accounts';
import type { Related } from '../data/people';
import { useMine } from '../data/mine';
import type { Text } from '../text';

// What is said by the account that a list is of, or by the reader, is filled; what is said of them is not.
const circle = 'M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18Z';
const speaker = 'M3 9v6h4l6 5V4L7 9Z';
const paths = {
  mutual: ['M4 8h15l-4-4M20 16H5l4 4'],
  follows: ['M4 12h16M14 6l6 6-6 6'],
  followed: ['M20 12H4M10 6l-6 6 6 6'],
  blocks: [circle + 'M7 10.5h10v3H7Z', 'evenodd'],
  blocked: [circle + 'M5.6 5.6l12.8 12.8'],
  mutes: [speaker + 'M17 9l5 6M22 9l-5 6', 'nonzero'],
  muted: [speaker + 'M17 9l5 6M22 9l-5 6'],
  you: ['M12 3a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9ZM4 21c0-9 16-9 16 0Z'],
} as const;
export type State = keyof typeof paths;

export interface MarkProps {
  state: State;
  word: Text;
  /** What it means without the row's surroundings. */
  name?: Text;
  /** Whether it is about the reader. */
  mine?: boolean;
}

const against: readonly State[] = ['blocks', 'blocked', 'mutes', 'muted'];

export function Mark({ state, word, name = word, mine }: MarkProps) {
  const [path, rule] = paths[state];
  const kind = against.includes(state) ? 'bad' : state === 'mutual' ? 'good' : 'plain';
  return (
    <span role="img" aria-label={name} title={name} class={`mark ${mine ? 'mine ' : ''}${state === 'you' ? 'you' : kind}`}>
      <svg viewBox="0 0 24 24" width={16} height={16} fill={rule ? 'currentColor' : 'none'} fill-rule={rule} stroke="currentColor" stroke-width="2.5" stroke-linejoin="round">
        <path d={path} />
      </svg>
      <span class="word">{word}</span>
    </span>
  );
}

/** Of a row of an account's list, or of those whose lists have the account; of is its name, undefined where a list itself is shown. */
export function Marks({ person: { follows, blocks, mutes, back }, of }: { person: Related; of?: Text }) {
  const blocked: MarkProps = { state: 'blocks', word: words.blocked, name: of && words.blockedBy(of) };
  const muted: MarkProps = { state: 'mutes', word: words.muted, name: of && words.mutedBy(of) };
  const marks: [boolean | undefined, MarkProps][] = back
    ? [
        [back.follows && follows, { state: 'mutual', word: words.back, name: of && words.backBy(of) }],
        [back.blocks, blocked],
        [back.mutes, muted],
        [blocks, { state: 'blocked', word: words.blocks, name: of && words.blocksOne(of) }],
        [mutes, { state: 'muted', word: words.mutes, name: of && words.mutesOne(of) }],
      ]
    : [
        [blocks, blocked],
        [mutes, muted],
      ];
  return <>{marks.map(([is, mark]) => is && <Mark key={mark.state} {...mark} />)}</>;
}

/** What the marks of rows mean, for whoever asks. Lists have marks for everybody, other rows for a reader who is somebody. */
export function Legend({ list }: { list?: boolean }) {
  const { me } = useMine();
  const all: readonly State[] = ['mutual', 'follows', 'followed', 'blocks', 'blocked', 'mutes', 'muted'];
  const group = (title: Text, means: { readonly [S in State]?: Text }, mine: boolean) => (
    <>
      <h3>{title}</h3>
      <ul>{all.map((state) => means[state] && <li key={state}><Mark state={state} word={means[state]} mine={mine} /></li>)}</ul>
    </>
  );
  return list || me ? (
    <>
      <button type="button" class="plain more" popovertarget="legend">
        {words.legend}
      </button>
      <div id="legend" class="panel" popover="auto" role="dialog" aria-label={words.legend}>
        {me && group(words.ofYou, words.mine, true)}
        {list && group(words.ofList, words.list, false)}
      </div>
    </>
  ) : null;
}
