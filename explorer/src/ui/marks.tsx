// What two accounts say of each other, in words that stand beside a name.

import { peopleTexts as words } from '../texts/accounts';
import type { Related } from '../data/people';
import type { Text } from '../text';

/** Of a row of an account's list, or of those whose lists have the account; of is its name, undefined where a list itself is shown. */
export function Marks({ person: { follows, blocks, mutes, back }, of }: { person: Related; of?: Text }) {
  const blocked = of ? words.blockedBy(of) : words.blocked;
  const muted = of ? words.mutedBy(of) : words.muted;
  const marks: [boolean | undefined, Text, string][] = back
    ? [
        [back.follows && follows, words.mutual, 'mark good'],
        [back.blocks, blocked, 'mark bad'],
        [back.mutes, muted, 'mark bad'],
        [blocks, of ? words.blocks(of) : words.blocked, 'mark bad'],
        [mutes, of ? words.mutes(of) : words.muted, 'mark bad'],
      ]
    : [
        [blocks, blocked, 'mark bad'],
        [mutes, muted, 'mark bad'],
      ];
  return (
    <>
      {marks.map(
        ([is, name, kind]) =>
          is && (
            <span key={name} class={`${kind} line`}>
              <bdi>{name}</bdi>
            </span>
          ),
      )}
    </>
  );
}
