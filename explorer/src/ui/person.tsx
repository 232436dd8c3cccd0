// An account in a row: picture, name, link.

import type { Children } from '../elements';
import { useRef } from 'preact/hooks';
import type { Person } from '../data/site';
import { hasTick } from '../data/ticks';
import { usePicture } from '../pictures/picture';
import { href } from '../router';
import { gap, named, plain, type Text } from '../text';
import { number, texts } from '../texts/first';
import { Marks } from './slots';

/** The beginning and the end of an address. */
export const short = (address: string): Text => plain(address.slice(0, 6) + '…' + address.slice(-4));

/** A colour from the address, for accounts without a picture. */
export const hue = (address: string): number => (parseInt(address.slice(2, 8), 16) || 0) % 360;

/** The first letter of a name that is seen: names may begin with what is not. */
export const initial = (name: string): Text | undefined => {
  const letter = named(name).match(/[\p{L}\p{N}\p{Extended_Pictographic}]/u)?.[0];
  return letter ? plain(letter.toUpperCase()) : undefined;
};

/** The first letter of an account's name, and over it the picture once it is there, if it may be asked for. */
export function Avatar({ person, size = 40 }: { person: Person; size?: number }) {
  const box = useRef<HTMLElement>(null);
  const url = usePicture(person.avatar, box);
  const background = `hsl(${hue(person.address)} 45% 30%)`; // dark enough for white letters in any hue
  const style = { width: `${size}px`, height: `${size}px`, fontSize: `${size * 0.45}px`, background };
  return (
    <span ref={box} class="avatar" aria-hidden="true" style={style}>
      <span>{initial(person.name) ?? plain(person.address.slice(2, 3).toUpperCase())}</span>
      {url && <img src={url} alt="" width={size} height={size} />}
    </span>
  );
}

/** The name of an account as it may be shown; '' for none. Of white space only it would not be seen. */
export const nameOf = ({ name }: { name: string }): Text | '' => (name.trim() ? named(name) : '');

/** The name of an account, or the beginning of its address. */
export const called = (person: { name: string; address: string }): Text => nameOf(person) || short(person.address);

/** The same as an element: names may be in any script and direction. */
export function Name({ person }: { person: Person }) {
  return <bdi title={plain(person.address)}>{called(person)}</bdi>;
}

/** Says that a check mark is only a part of the name, where it could pass for a verification. */
export const Ticked = ({ person }: { person: Person }) => (hasTick(person.name) ? <span class="ticked">{texts.ticked}</span> : null);

interface Props {
  person: Person;
  /** States beside those that it has for the reader. */
  marks?: Children;
  /** Only its name, where several accounts are in a line. */
  brief?: boolean;
}

/** Where an account is. Its name comes first, and below it what it is to the reader and the address that it may hide. */
export function PersonLink({ person, marks, brief }: Props) {
  return (
    <a class="person" href={href(['a', person.address || person.name])}>
      <Avatar person={person} size={brief ? 28 : 40} />
      {brief ? (
        <Name person={person} />
      ) : (
        <span class="names">
          <Name person={person} />
          <span class="under quiet small">
            <Ticked person={person} />
            {marks}
            <Marks address={person.address} />
            {nameOf(person) && person.address && <span class="short">{short(person.address)}</span>}
          </span>
        </span>
      )}
    </a>
  );
}

/** How many follow an account; who hears the page is told what the number counts. */
export function Followers({ count, small }: { count: number; small?: boolean }) {
  return (
    <span class={small ? 'quiet small num' : 'quiet num'}>
      {number(count)}
      <span class="hidden">
        {gap}
        {texts.followers}
      </span>
    </span>
  );
}

/** A row that begins with who it is about. The whole address is there where it has room. */
export function PersonRow({ person, marks, children }: { person: Person; marks?: Children; children: Children }) {
  return (
    <div class="related">
      <PersonLink person={person} marks={marks} />
      <code class="whole quiet">{plain(person.address)}</code>
      {children}
    </div>
  );
}
