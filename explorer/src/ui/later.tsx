// Views that load with what they need.

import type { ComponentType } from 'preact';
import type { Place } from '../router';
import { part } from '../worker';
import { Show, useLoad } from './load';

export type View = ComponentType<{ place: Place }>;

/** Shows a view with what it is given. */
export function Later<Given extends object>({ load, given }: { load: () => Promise<ComponentType<Given>>; given: Given }) {
  const loaded = useLoad(() => part(load), [load], false);
  return <Show loaded={loaded}>{(View) => <View {...given} />}</Show>;
}
