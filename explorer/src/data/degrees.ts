// Distributions of degrees: nothing here needs a browser.

/** How many accounts have how many: [degree, accounts], ascending. */
export type Counted = readonly (readonly [number, number])[];

/** How many accounts have a degree, and how many have at least that: the sums from the end. */
export function sums(degrees: Counted): [number[], number[], number[]] {
  const atLeast: number[] = [];
  let sum = 0;
  for (let i = degrees.length - 1; i >= 0; i--) {
    sum += degrees[i]?.[1] ?? 0;
    atLeast[i] = sum;
  }
  return [degrees.map(([degree]) => degree), degrees.map(([, count]) => count), atLeast];
}

/** The place on a leaderboard, from 1, of the first account with at most a degree: behind all that have more. */
export const placeOf = (degrees: Counted, most: number): number => degrees.reduce((sum, [degree, count]) => sum + (degree > most ? count : 0), 1);

/** How many accounts have at least ten, a hundred and so on: [degree, accounts], as far as there are any. */
export function tens(degrees: Counted): [number, number][] {
  const all: [number, number][] = [];
  for (let least = 10; ; least *= 10) {
    const accounts = placeOf(degrees, least - 1) - 1;
    if (!accounts) {
      return all;
    }
    all.push([least, accounts]);
  }
}

/** The degree that half of the accounts do not have more than. */
export function median(degrees: Counted, total: number): number {
  let sum = 0;
  for (const [degree, count] of degrees) {
    sum += count;
    if (2 * sum >= total) {
      return degree;
    }
  }
  return 0;
}

/** Sums over ranges that double: 1, 2, 3–4, 5–8 and so on. */
export function ranges(degrees: Counted): [from: number, to: number, count: number][] {
  const sums = new Map<number, number>();
  for (const [degree, count] of degrees) {
    const power = Math.ceil(Math.log2(degree));
    sums.set(power, (sums.get(power) ?? 0) + count);
  }
  return [...sums].map(([power, count]) => [Math.floor(2 ** (power - 1)) + 1, 2 ** power, count]);
}
