// Lists as files. Nothing here needs a browser.

import { named, type Text } from '../text';
import type { Related } from './people';

/** Rows of a file, at most. */
export const mostExported = 100_000;
const pageSize = 1000;

/** Reads rows of a relation in their order, page by page, until it ends, is stopped, or has given the most that a file has. */
export async function* pages<Row>(read: (offset: number, limit: number) => Promise<readonly Row[]>, stop: AbortSignal): AsyncGenerator<readonly Row[]> {
  for (let offset = 0; offset < mostExported; offset += pageSize) {
    stop.throwIfAborted();
    const rows = await read(offset, pageSize);
    stop.throwIfAborted();
    yield rows;
    if (rows.length < pageSize) {
      return;
    }
  }
}

const columns = ['address', 'name', 'says', 'tags', 'followers', 'added'] as const;

const saysOf = ({ follows, blocks, mutes }: Related): string[] =>
  [follows && 'follows', blocks && 'blocks', mutes && 'mutes'].filter((word) => word !== false);

const addedOf = ({ added }: Related): string => (added > 0 ? new Date(added).toISOString() : '');

// Spreadsheets take what begins so for a formula, also after what they drop, and in wide forms. Text that begins with an
// apostrophe is none, and looks as it did.
const formula = /^[\s\ufffd]*[=+\-@|%\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]/;

/** A cell of a file of RFC 4180: nothing that a spreadsheet would run or that a reader would not see. */
export function cell(text: string): string {
  const shown: string = named(text);
  const safe = formula.test(shown) ? `'${shown}` : shown;
  return /[",\r\n;\t]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Rows as lines of CSV (RFC 4180), with a first line that names the columns. */
export function* csv(rows: Iterable<Related>): Generator<string> {
  yield columns.join(',') + '\r\n';
  for (const row of rows) {
    const cells = [row.address, row.name, saysOf(row).join(' '), row.tags.join(', '), row.followers === undefined ? '' : String(row.followers), addedOf(row)];
    yield cells.map(cell).join(',') + '\r\n';
  }
}

// What is not seen, and what ends lines in programs, is spelled out: a reader of the file sees it.
const spelled = (json: string): string =>
  json.replace(/[\p{Cf}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800\u3164]/gu, (letter) =>
    Array.from({ length: letter.length }, (_, i) => '\\u' + letter.charCodeAt(i).toString(16).padStart(4, '0')).join(''),
  );

/** What a list is of, beside its rows. */
export interface Head {
  site: string;
  as_of: string;
  of: string;
  kind: string;
  /** Whether the list has more than the file. */
  cut: boolean;
}

/** Rows as JSON, with exactly the texts that the site has. */
export function* json(head: Head, rows: Iterable<Related>): Generator<string> {
  yield spelled(JSON.stringify(head)).slice(0, -1) + ',"accounts":[';
  let before = '\n';
  for (const row of rows) {
    const { address, name, tags, followers } = row;
    const added = addedOf(row);
    yield before + spelled(JSON.stringify({ address, name, says: saysOf(row), tags, followers, ...(added && { added }) }));
    before = ',\n';
  }
  yield '\n]}\n';
}

/** The name of a file: of what is exported, and of whom, as far as every system takes that. */
export function fileName(what: string, { name, address }: { name: string; address: string }, extension: string): Text {
  const whose = /^[a-z0-9][a-z0-9.-]{0,63}$/.test(name) && !name.includes('..') ? name : address;
  return named(`${what}-${whose}.${extension}`);
}
