// Leaderboards: pages of them, the most first.

import type { BoardRow } from '@followpress/client';
import { allBoards, isWhole, once, site, top, type Board, type Person, type Ranked } from './site';

/** A leaderboard. */
export interface Ranking {
  /** How many accounts it has. */
  total: number;
  /** Counts that its rows have. */
  counts: readonly Board[];
  /** Whether there are accounts beyond it. */
  cut: boolean;
  page(offset: number, limit: number): Promise<readonly Ranked[]>;
  /** The row of an account, from 0; undefined if it has none. */
  find(user: string): Promise<number | undefined>;
}

/** Boards of which a whole site ranks all accounts, with the names that they have in the API. */
const ranked = { followers: 'followers', following: 'following', mutuals: 'mutuals', top8: 'top8', blocked: 'blocks' } as const;
type Full = keyof typeof ranked;
const full = Object.keys(ranked) as Full[];

const isFull = (board: Board): board is Full => board in ranked;

/** The boards of the site. */
export const boards = once(async (): Promise<readonly Board[]> => ((await isWhole()) ? allBoards : ['followers', 'following']));

/** Opens a leaderboard. */
export async function openBoard(board: Board): Promise<Ranking> {
  if (!(await isWhole())) {
    return specBoard(board);
  }
  return isFull(board) ? fullBoard(board) : shortBoard(board, await leaders(board));
}

async function most(): Promise<number> {
  return Number((await site.root()).config['leaderboard_max']);
}

async function fullBoard(board: Full): Promise<Ranking> {
  const [{ leaderboardCount }, largest] = await Promise.all([site.leaderboardCount(), most()]);
  const total = Number(leaderboardCount);
  const read = async (offset: number, limit: number): Promise<Ranked[]> => {
    const { results } = await site.ranked({ sort: ranked[board], direction: 'desc', offset, limit });
    return results.map((row, i) => ({
      address: row.address,
      name: row.name ?? '',
      avatar: row.avatar ?? '',
      place: offset + i + 1,
      counts: Object.fromEntries(full.map((name) => [name, Number(row[ranked[name]])])),
    }));
  };
  return {
    total,
    counts: full,
    cut: false,
    page: async (offset, limit) => {
      const starts: number[] = [];
      for (let start = offset; start < offset + limit; start += largest) {
        starts.push(start);
      }
      return (await Promise.all(starts.map((start) => read(start, Math.min(largest, offset + limit - start))))).flat();
    },
    find: async (user) => {
      const details = await found(() => site.user(user).details());
      const rank = Number(details?.ranks[`${ranked[board]}_rank`] ?? 0);
      return rank === 0 ? undefined : rank - 1;
    },
  };
}

/** What was read; undefined for somebody that the site does not know. */
async function found<T>(read: () => Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof Error && 'status' in error && error.status === 404) {
      return undefined;
    }
    throw error;
  }
}

// leaders are the rows of a leaderboard that is in one object.
async function leaders(board: Board): Promise<Ranked[]> {
  const rows = await site.leaderboard(board as Parameters<typeof site.leaderboard>[0], { limit: await most() });
  return rows.map((row) => ({ address: row.address, name: '', avatar: '', place: row.rank, counts: { [board]: countOf(row) } }));
}

// countOf is the count of a row: the member beside rank and address, whose name depends on the board.
function countOf({ rank: _rank, address: _address, ...rest }: BoardRow): number {
  return Number(Object.values(rest)[0]);
}

async function shortBoard(board: Board, rows: readonly Ranked[], longest = rows.length): Promise<Ranking> {
  const names = new Map((await top()).people.map((person) => [person.address, person]));
  return {
    total: rows.length,
    counts: [board],
    cut: longest > rows.length || rows.length === (await most()),
    page: (offset, limit) => Promise.all(rows.slice(offset, offset + limit).map(async (row) => ({ ...row, ...(await named(row, names)) }))),
    find: async (user) => {
      const person = await found(() => site.find(user));
      const index = person ? rows.findIndex((row) => row.address === person.address) : -1;
      return index < 0 ? undefined : index;
    },
  };
}

// named finds the name and the picture of an account. One that cannot be had is shown as its address.
async function named(row: Ranked, names: ReadonlyMap<string, Person>): Promise<Pick<Person, 'name' | 'avatar'>> {
  const known = row.name ? row : names.get(row.address);
  if (known?.name) {
    return { name: known.name, avatar: known.avatar };
  }
  try {
    const { ens } = await profile(row.address);
    return { name: ens.name, avatar: ens.avatar };
  } catch {
    return { name: '', avatar: '' };
  }
}

async function profile(address: string): Promise<{ ens: { name: string; avatar: string } }> {
  if (await isWhole()) {
    return site.user(address).account();
  }
  const person = await site.find(address);
  return person?.token ? site.list(person.token).details() : { ens: { name: '', avatar: '' } };
}

// specBoard is a leaderboard of a site of the specification. That of followers goes on with the most
// followed accounts.
async function specBoard(board: Board): Promise<Ranking> {
  const rows = await leaders(board);
  if (board !== 'followers') {
    return shortBoard(board, rows);
  }
  const { people, total } = await top();
  const more = people.slice(rows.length).map((person, i): Ranked => {
    return { ...person, place: rows.length + i + 1, counts: { followers: person.followers ?? 0 } };
  });
  return shortBoard(board, [...rows, ...more], total);
}
