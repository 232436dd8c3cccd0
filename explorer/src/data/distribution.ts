// Where a count is in a distribution: nothing here needs a browser.

/** A bar of a picture of a distribution, by powers of two. */
export interface Bin {
  from: number;
  to: number;
  accounts: number;
}

export interface Distribution {
  /** The part of accounts that have fewer, from 0 to 1. */
  below: number;
  /** How many accounts there are with one or more. */
  accounts: number;
  bins: Bin[];
}

/** Where a count is among degrees, which are [degree, accounts]; null if no account has one. */
export function distributionOf(degrees: readonly (readonly [number, number])[], count: number): Distribution | null {
  let [accounts, fewer, most] = [0, 0, Math.max(1, count)];
  for (const [degree, n] of degrees) {
    accounts += n;
    fewer += degree < count ? n : 0;
    most = Math.max(most, degree);
  }
  if (!accounts) {
    return null;
  }
  const bin = (degree: number): number => Math.floor(Math.log2(degree));
  const empty = (_: unknown, n: number): Bin => ({ from: 2 ** n, to: 2 ** (n + 1) - 1, accounts: 0 });
  const bins = Array.from({ length: bin(most) + 1 }, empty);
  for (const [degree, n] of degrees) {
    const at = bins[bin(degree)];
    if (at) {
      at.accounts += n;
    }
  }
  return { below: fewer / accounts, accounts, bins };
}
