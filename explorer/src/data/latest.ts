// What the start has for readers who know nobody: who followed whom last, words to search for, and what else there is.

import { openBoard } from './boards';
import { relation } from './people';
import { isWhole, latest, type Board, type Person, type Ranked } from './site';

/** Who followed whom, and when, in milliseconds. */
export interface Follow {
  actor: Person;
  person: Person;
  added: number;
}

const few = 10;

async function newest(person: Person): Promise<Follow[]> {
  const { total, page } = await relation({ address: person.address, list: '' }, 'followers', { sort: 'latest', tags: [], term: '' });
  const row = (await page(0, Math.min(total, 20))).find(({ follows, added }) => follows && added > 0);
  return row ? [{ actor: row, person, added: row.added }] : [];
}

/** The accounts that were followed last, by whom; the newest first. A snapshot without times says nothing of that. */
export async function latestFollows(): Promise<Follow[]> {
  const people = (await latest()).slice(0, few);
  return (await Promise.all(people.map(newest))).flat().sort((a, b) => b.added - a.added);
}

/** The first rows of a leaderboard other than that of followers. */
export interface Instead {
  board: Board;
  rows: readonly Ranked[];
}

/** What is shown where nobody knows who followed last; null if there is nothing either. */
export async function instead(): Promise<Instead | null> {
  for (const board of (await isWhole()) ? (['top8', 'following'] as const) : (['following'] as const)) {
    const rows = (await (await openBoard(board)).page(0, few)).filter(({ counts }) => counts[board]);
    if (rows.length) {
      return { board, rows };
    }
  }
  return null;
}

const longest = 100; // letters of a name that are looked at

/** Words that many names have, as samples of what can be searched. */
export function samplesOf(people: readonly Person[], most: number): string[] {
  const counts = new Map<string, number>();
  for (const { name } of people) {
    const parts = name.slice(0, longest).toLowerCase().split('.').slice(0, -1).join(' ');
    for (const word of new Set(parts.match(/\p{L}{4,12}/gu) ?? [])) {
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
  }
  // Of words that are as common, that of the most followed account comes first.
  return [...counts].sort((a, b) => b[1] - a[1]).slice(0, most).map(([word]) => word);
}
