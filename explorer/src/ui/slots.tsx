// Places for what is only shown to readers who have said who they are. It loads after the first view (ui/mine.tsx).

import type { ComponentType } from 'preact';
import { useMine } from '../data/mine';
import type { Person } from '../data/site';

/** What has loaded. */
export const slots: { Legend?: ComponentType<{ list?: boolean }>; Marks?: ComponentType<{ address: string }>; Line?: ComponentType<{ person: Person }> } = {};

/** What an account is to the reader, beside it in a row. */
export function Marks({ address }: { address: string }) {
  const { me } = useMine();
  return me && slots.Marks ? <slots.Marks address={address} /> : null;
}

/** What such marks mean. */
export function Legend() {
  const { me } = useMine();
  return me && slots.Legend ? <slots.Legend /> : null;
}

/** The same in the head of its profile. */
export function Line({ person }: { person: Person }) {
  useMine();
  return <div class="of-mine">{slots.Line && <slots.Line key={person.address} person={person} />}</div>;
}
