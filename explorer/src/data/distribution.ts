// Where a count is in a distribution: nothing here needs a browser.

export interface Distribution {
  /** The part of accounts that have fewer, from 0 to 1. */
  below: number;
  /** How many accounts there are with one or more. */
  accounts: number;
}

/** Where a count is among degrees, which are [degree, accounts]; null if no account has one. */
export function distributionOf(degrees: readonly (readonly [number, number])[], count: number): Distribution | null {
  let [accounts, fewer] = [0, 0];
  for (const [degree, n] of degrees) {
    accounts += n;
    fewer += degree < count ? n : 0;
  }
  return accounts ? { below: fewer / accounts, accounts } : null;
}
