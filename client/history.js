// What happened, for followpress.js, which loads this module when it is first asked for that.

// How many hours an interval has.
const intervals = new Map(Object.entries({ hour: 1, day: 24, week: 168, month: 720, all: 999 }));
const shardSize = 1000;

/**
 * answer answers a request for what was done to an account, or what a list did: subject is its address, or its token ID.
 * tools are functions of followpress.js.
 */
export async function answer(r, subject, tools) {
  const { q, site, isList, name } = r;
  const interval = intervals.has(q.interval) ? q.interval : 'week';
  const opcode = /^[1-4]$/.test(q.opcode) ? Number(q.opcode) : 0;
  const asOf = Date.parse(site.root.as_of);
  const start = /^\d{1,18}$/.test(q.start) ? Math.min(Number(q.start), 253402300799) : undefined;
  const until = Math.min(asOf, start === undefined ? asOf : 1000 * start);
  const since = until - intervals.get(interval) * 3_600_000;
  const kind = isList ? 'activity' : 'notifications';
  const wanted = { ...q, since, until, opcode, filtered: start !== undefined, tag: tools.utf8(q.tag ?? '') };
  const rows = (await page(site, kind, subject, wanted, tools.checked)).map((row) => (isList ? [row[0], subject, ...row.slice(1)] : row));
  if (name.endsWith('atom')) {
    return feed(r, subject, rows, { ...q, interval, opcode, start }, tools);
  }
  const entries = rows.map((row) => entryOf(row, isList ? row[2] : subject));
  const total = (code) => entries.filter((entry) => entry.opcode === code).length;
  return {
    summary: {
      interval: intervals.get(interval) + ':00:00(hrs)',
      opcode: opcode ? String(opcode) : 'all',
      total: entries.length,
      total_follows: total(1),
      total_unfollows: total(2),
      total_tags: total(3),
      total_untags: total(4),
    },
    [kind]: entries,
  };
}

// page reads the rows of a page. They are sorted by time, the newest first.
async function page(site, kind, subject, { since, until, filtered, opcode, tag, offset, limit }, checked) {
  const rows = [];
  const first = (await site.get(`_search/${kind}/${subject}`))?.json;
  let n = opcode || filtered || tag !== '' ? 0 : Math.floor(offset / shardSize);
  let skip = offset - n * shardSize;
  for (; n * shardSize < (first?.total ?? 0); n++) {
    const shard = n ? checked(await site.shard(`${kind}/older/${subject}/${n}`), first.total, n) : first;
    for (const row of shard.entries) {
      if (row[0] < since) {
        return rows;
      }
      const kept = row[0] <= until && (!opcode || row.at(-2) === opcode) && (tag === '' || row.at(-1) === tag);
      if (kept && skip-- <= 0 && rows.push(row) >= limit) {
        return rows;
      }
    }
  }
  return rows;
}

const time = (milliseconds) => new Date(milliseconds).toISOString();
const hex = (tag) => Array.from(new TextEncoder().encode(tag), (byte) => byte.toString(16).padStart(2, '0')).join('');

// entryOf is the entry of a row. about is the address that the operation is about.
const entryOf = ([at, token_id, address, name, avatar, opcode, tag], about) => ({
  address,
  name: name || null,
  avatar: avatar || null,
  token_id,
  action: ['follow', 'unfollow', 'tag', 'untag'][opcode - 1],
  opcode,
  op: `0x010${opcode}0101${about.slice(2)}${hex(tag)}`,
  tag,
  updated_at: time(at),
});

/* The Atom feed, as server/internal/answer/history/feed.go writes it */

// escaped is a text as encoding/xml of Go has it in XML, which cannot have every character.
const escaped = (text) =>
  text
    .replace(/[^\t\n\r -\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, '\ufffd')
    .replace(/["'&<>\t\n\r]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c] ?? `&#${/\s/.test(c) ? 'x' + c.charCodeAt(0).toString(16).toUpperCase() : c.charCodeAt(0)};`);
const element = (name, text) => `<${name}>${escaped(text)}</${name}>`;
const person = (name, page) => `<author>${element('name', name)}${element('uri', page)}</author>`;
const link = (rel, type, href) => `<link rel="${rel}" type="${type}" href="${escaped(href)}"></link>`;

function feed(r, address, rows, q, { userOf, profileURL }) {
  const tagURI = 'tag:github.com,2026:followpress/';
  const user = userOf(r.subject);
  const pageOf = (address) => profileURL(r, address).replace(/[^\w.~:/?#[\]@!$&'()*+,;=%-]/gu, encodeURIComponent);
  const entries = new Map(); // what was done, undone and done again in one block is one piece of news
  for (const [at, token, by, name, , opcode, tag] of rows) {
    const did = ['follows you', 'no longer follows you', `tagged you “${tag}”`, `took the tag “${tag}” from you`][opcode - 1];
    const id = `${tagURI}operation/${address}/${token}/${at}/${opcode}/${hex(tag)}`;
    const about = element('id', id) + element('title', `${name || by} ${did}`) + element('updated', time(at));
    entries.set(id, `<entry>${about}${person(name || by, pageOf(by))}${link('alternate', 'text/html', pageOf(by))}</entry>`);
  }
  return (
    '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">' +
    element('id', `${tagURI}notifications/${address}`) +
    element('title', 'Notifications of ' + user) +
    element('updated', time(rows[0]?.[0] ?? Date.parse(r.site.root.as_of))) +
    person(user, pageOf(address)) +
    link('self', 'application/atom+xml', 'notifications.atom' + normal(q)) +
    link('alternate', 'text/html', pageOf(address)) +
    [...entries.values()].join('') +
    '</feed>'
  );
}

// normal is the query of a request as the server writes it: what makes a difference, in normal form (site.NormalForm).
function normal({ interval, limit, offset, opcode, start, tag = '' }) {
  const given = { interval: interval === 'week' ? '' : interval, limit: limit === 50 ? 0 : limit, offset, opcode, start: start === undefined ? '' : String(start), tag };
  const form = (text) => text.replace(/[^\w.~=-]/g, (c) => '%' + c.charCodeAt(0).toString(16).toUpperCase().padStart(2, '0'));
  const pairs = Object.entries(given).flatMap(([name, value]) => (value ? `${name}=${form(String(value))}` : []));
  return pairs.length ? '?' + pairs.join('&') : '';
}
