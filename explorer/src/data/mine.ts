// The reader's own accounts, and those that were looked at lately. The browser keeps both for this site, and nobody is
// told. What it has kept may be anything: others write there too.

import { useEffect, useState } from 'preact/hooks';
import { isAddress, keep as keepText, placeOf, type Person } from './site';

/** What is kept. */
export interface Mine {
  /** The account that the reader is at the moment. */
  me: Person | undefined;
  accounts: readonly Person[];
  /** The last one first. */
  viewed: readonly Person[];
}

const mostAccounts = 8;
const mostViewed = 12;
const longest = 1_000_000; // letters that are read

type What = 'mine' | 'viewed' | 'visits';

/** What the browser has kept; undefined for nothing, and for what is too much or nothing that this page has written. */
export function load(what: What): unknown {
  try {
    const text = localStorage.getItem(placeOf(what)) ?? '';
    return text.length > longest ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined; // no storage, or something else in it
  }
}

/** Keeps a value; without storage it holds until the page is closed. */
export const keep = (what: What, value: unknown): void => keepText(what, JSON.stringify(value));

const rowsOf = (people: readonly Person[]) => people.map(({ address, name, avatar }) => [address, name, avatar]);

function peopleOf(value: unknown, most: number): Person[] {
  const all = new Map<string, Person>();
  for (const row of Array.isArray(value) ? value.slice(0, most) : []) {
    const [address, name, avatar] = (Array.isArray(row) ? row : []).map((part) => (typeof part === 'string' ? part : ''));
    if (address && isAddress(address)) {
      all.set(address.toLowerCase(), { address: address.toLowerCase(), name: name ?? '', avatar: avatar ?? '' });
    }
  }
  return [...all.values()];
}

function read(): Mine {
  const kept = load('mine') as { me?: unknown; accounts?: unknown } | null | undefined;
  const accounts = peopleOf(kept?.accounts, mostAccounts);
  return { accounts, me: accounts.find(({ address }) => address === kept?.me), viewed: peopleOf(load('viewed'), mostViewed) };
}

let current = read();
const listeners = new Set<() => void>();

/** Tells all that show something of this. */
export const tell = (): void => listeners.forEach((listener) => listener());

function set(changes: Partial<Mine>): void {
  current = { ...current, ...changes };
  tell();
}

// Other tabs write too. Without a key, all that was kept is gone.
addEventListener('storage', ({ key }) => {
  if (key === null || key === placeOf('mine') || key === placeOf('viewed')) {
    set(read());
  }
});

/** What is kept now. */
export const mine = (): Mine => current;

function choose(accounts: readonly Person[], me: Person | undefined): void {
  keep('mine', { me: me?.address, accounts: rowsOf(accounts) });
  set({ accounts, me });
}

/** Makes an account the reader's, and the one that they are now. */
export function become(person: Person): void {
  const isKnown = current.accounts.some(({ address }) => address === person.address);
  choose(isKnown ? current.accounts : [person, ...current.accounts].slice(0, mostAccounts), person);
}

/** Keeps the name and the picture that an account of the reader has now. */
export function rename(person: Person): void {
  const { me, accounts } = current;
  const before = accounts.find(({ address }) => address === person.address);
  if (before && (before.name !== person.name || before.avatar !== person.avatar)) {
    choose(accounts.map((one) => (one === before ? person : one)), me?.address === person.address ? person : me);
  }
}

export function forget({ address }: Person): void {
  const { [address]: _, ...visits } = { ...(load('visits') as object) } as Record<string, unknown>;
  keep('visits', visits);
  const accounts = current.accounts.filter((one) => one.address !== address);
  choose(accounts, current.me?.address === address ? accounts[0] : current.me);
}

/** Keeps that an account was looked at. */
export function view(person: Person): void {
  const viewed = [person, ...current.viewed.filter(({ address }) => address !== person.address)].slice(0, mostViewed);
  keep('viewed', rowsOf(viewed));
  set({ viewed });
}

export function forgetViewed(): void {
  keep('viewed', []);
  set({ viewed: [] });
}

/** What is kept, and again when it changes, or more is known about it. */
export function useMine(): Mine {
  const [, draw] = useState({});
  useEffect(() => {
    const listener = () => draw({});
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
  return current;
}
