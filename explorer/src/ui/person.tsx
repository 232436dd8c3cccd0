// An account in a row: picture, name, link.

import { useState } from 'preact/hooks';
import type { Person } from '../data/site';
import { href } from '../router';
import { useSettings } from '../settings';

/** The beginning and the end of an address. */
export const short = (address: string): string => address.slice(0, 6) + '…' + address.slice(-4);

/** Whether a picture may be asked for: over https, or in the text itself. */
const isPicture = (url: string): boolean => /^(https:\/\/|data:image\/)/i.test(url);

// A colour from the address, for accounts without a picture.
const hue = (address: string): number => parseInt(address.slice(2, 8), 16) % 360;

export function Avatar({ person, size = 40 }: { person: Person; size?: number }) {
  const { pictures } = useSettings();
  const [broken, setBroken] = useState('');
  const wanted = isPicture(person.avatar) && broken !== person.avatar && (pictures || person.avatar.startsWith('data:'));
  return wanted ? (
    <img
      class="avatar"
      src={person.avatar}
      alt=""
      width={size}
      height={size}
      loading="lazy"
      decoding="async"
      referrerpolicy="no-referrer"
      onError={() => setBroken(person.avatar)}
    />
  ) : (
    <span class="avatar" aria-hidden="true" style={{ width: size, height: size, background: `hsl(${hue(person.address)} 45% 40%)` }}>
      {[...(person.name || person.address.slice(2))][0]}
    </span>
  );
}

/** The name of an account, or its address. Names may be in any script and direction. */
export function Name({ person }: { person: Person }) {
  return <bdi title={person.address}>{person.name || short(person.address)}</bdi>;
}

export function PersonLink({ person }: { person: Person }) {
  return (
    <a class="person" href={href(['a', person.address])}>
      <Avatar person={person} />
      <Name person={person} />
    </a>
  );
}
