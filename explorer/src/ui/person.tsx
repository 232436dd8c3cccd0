// An account in a row: picture, name, link.

import { useState } from 'preact/hooks';
import type { Person } from '../data/site';
import { href } from '../router';
import { useSettings } from '../settings';
import { isInline, picture } from './links';
import { plain } from './plain';

/** The beginning and the end of an address. */
export const short = (address: string): string => address.slice(0, 6) + '…' + address.slice(-4);

// A colour from the address, for accounts without a picture.
const hue = (address: string): number => (parseInt(address.slice(2, 8), 16) || 0) % 360;

// Names may begin with what is not seen.
const initial = (name: string): string | undefined => name.match(/[\p{L}\p{N}\p{Extended_Pictographic}]/u)?.[0].toUpperCase();

// Pictures that could not be had are not asked for again.
const broken = new Set<string>();

/** The first letter of an account's name, and over it the picture once it is there, if it may be asked for. */
export function Avatar({ person, size = 40 }: { person: Person; size?: number }) {
  const { pictures } = useSettings();
  const [state, setState] = useState({ source: '', loaded: false });
  const source = pictures || isInline(person.avatar) ? picture(person.avatar) : undefined;
  const end = (loaded: boolean) => () => {
    if (source && !loaded) {
      broken.add(source);
    }
    setState({ source: source ?? '', loaded });
  };
  const background = `hsl(${hue(person.address)} 45% 30%)`; // dark enough for white letters in any hue
  const style = { width: `${size}px`, height: `${size}px`, fontSize: `${size * 0.45}px`, background };
  return (
    <span class="avatar" aria-hidden="true" style={style}>
      <span>{initial(person.name) ?? person.address.slice(2, 3).toUpperCase()}</span>
      {source && !broken.has(source) && (
        <img
          class={state.loaded && state.source === source ? 'loaded' : undefined}
          src={source}
          alt=""
          width={size}
          height={size}
          loading="lazy"
          decoding="async"
          referrerpolicy="no-referrer"
          onLoad={end(true)}
          onError={end(false)}
        />
      )}
    </span>
  );
}

/** The name of an account, or its address. Names may be in any script and direction. */
export function Name({ person }: { person: Person }) {
  return <bdi title={person.address}>{plain(person.name) || short(person.address)}</bdi>;
}

export function PersonLink({ person }: { person: Person }) {
  return (
    <a class="person" href={href(['a', person.address || person.name])}>
      <Avatar person={person} />
      <Name person={person} />
    </a>
  );
}
