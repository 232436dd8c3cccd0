// What tells an account from others that look alike: loaded after a profile is there.

import { likenesses, looksLike, mixedScripts, spellsAddress } from '../data/lookalikes';
import type { Profile } from '../data/people';
import { once, top } from '../data/site';
import { hasTick } from '../data/ticks';
import { identityTexts as words } from '../texts/profile';
import { href } from '../router';
import { gap, plain } from '../text';
import { useKept, useLoad } from './load';
import { Name, short } from './person';

export { checksummed } from '../data/checksum';

const known = once(async () => likenesses((await top()).people), true);

/** Whom a name may be mistaken for; nothing for most names. */
export function Likeness({ person }: { person: Profile }) {
  const other = useKept(useLoad(async () => looksLike(person, await known()), [person.address, person.name, person.followers]));
  const scripts = mixedScripts(person.name);
  const spells = spellsAddress(person);
  const ticked = hasTick(person.name) || person.texts.some(([key, text]) => key === 'name' && hasTick(text));
  if (!other && !scripts.length && !spells && !ticked) {
    return null;
  }
  return (
    <div class="notice likeness">
      {other && (
        <p>
          {words.looksLike}
          {gap}
          <a href={href(['a', other.address])}>
            <Name person={other} />
            {gap}
            {words.bracketed(short(other.address))}
          </a>
          {(other.followers ?? 0) > (person.followers ?? 0) ? words.looksAbout : words.compare}
        </p>
      )}
      {spells && <p>{words.spells}</p>}
      {ticked && <p>{words.ticked}</p>}
      {scripts.length > 0 && <p>{words.mixed(plain(scripts.map((script) => (script === 'Other' ? words.other : script.replace('_', ' '))).join(', ')))}</p>}
    </div>
  );
}
