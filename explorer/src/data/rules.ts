// Rules of the graph, copied from site/rules/rules.go under the same names. TestUnits has their cases.

/** What a list says of an account that it holds, as bits. */
export const Follow = 1;
export const Block = 2;
export const Mute = 4;

/** Whether a list holds an account by a record of a kind, if its data is the address of that account. */
export const holds = (version: number, type: string): boolean => version === 1 && type === 'address';

/** The state that a held record with these tags makes. */
export const stateOf = (tags: readonly string[]): number =>
  (tags.includes('block') ? Block : 0) | (tags.includes('mute') ? Mute : 0) || Follow;

/** Whether a list follows an account by a record of a kind with these tags. */
export const isFollow = (version: number, type: string, tags: readonly string[]): boolean => holds(version, type) && stateOf(tags) === Follow;
