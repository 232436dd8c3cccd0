// Views that load with what they need.

import type { ComponentType } from 'preact';
import type { Place } from '../router';
import { part } from '../worker';
import { Show, useLoad } from './load';

export type View = ComponentType<{ place: Place }>;

export function Later({ load, place }: { load: () => Promise<View>; place: Place }) {
  const loaded = useLoad(() => part(load), [load], false);
  return <Show loaded={loaded}>{(View) => <View place={place} />}</Show>;
}
