// Run by the tests of the package client, which give it sites, cases and the minified
// library; `node --test client/` alone runs what needs no site.

import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import test from 'node:test';

import { check } from './check.mjs';

// unpacked reads a shard of the manifest, a gzip file.
const unpacked = (response) => new Response(response.body.pipeThrough(new DecompressionStream('gzip'))).json();

// later moves the clock: what is kept grows older at once, however busy the machine is.
const { now } = Date;
let ahead = 0;
Date.now = () => now() + ahead;
const later = (milliseconds) => {
  ahead += milliseconds;
};

const folder = process.env.FOLLOWPRESS_CLIENT ?? new URL('..', import.meta.url).href;
const library = { ...(await import(folder + 'followpress.js')), ...(await import(folder + 'shim.js')) };
const { openSite, install, ApiError } = library;
const jobs = process.env.FOLLOWPRESS_JOBS ? JSON.parse(readFileSync(process.env.FOLLOWPRESS_JOBS)) : [];

for (const { name, base, cases, counted, key } of jobs) {
  test(`rows of ${name}`, () => sameRows(base));
  test(`answers of ${name}`, async () => {
    const { failures } = await check(library, base, cases);
    assert.deepStrictEqual(failures.slice(0, 3), []);
  });
  test(`answers of ${name}, checked`, { skip: !key }, async () => {
    let proofs = 0;
    const more = { keys: [key], verified: () => proofs++ };
    const checking = { openSite: (url) => openSite(url, more), install: (options) => install({ ...options, ...more }) };
    const { failures } = await check(checking, base, cases);
    assert.deepStrictEqual(failures.slice(0, 3), []);
    assert.strictEqual(proofs, 2);
  });
  test(`fetches of the first operations of ${name}`, async () => {
    const first = cases.filter(({ path, status }) => status === 200 && /\/(notifications(\.atom)?|activity)(\?interval=\w*)?$/.test(path));
    assert.strictEqual(first.length > 0, 'history_window' in (await openSite(base).root()).config);
    for (const { path } of first) {
      const keys = [];
      await openSite(base, { fetch: (url) => (keys.push(url), fetch(url)) }).answer('GET', path);
      assert.ok(keys.length <= 3, `${path}: got ${keys.join(' ')}, want the root and two more`);
    }
  });
  test(`fetches of ${name}`, { skip: !counted }, async () => {
    for (const c of cases.filter(({ status }) => status === 200)) {
      const keys = [];
      const site = openSite(base, { fetch: (url) => (keys.push(decodeURI(new URL(url).pathname.slice(1))), fetch(url)) });
      await site.answer(c.method, c.path, c.sent);
      const most = mostFetches(c);
      assert.ok(keys.length <= most, `${c.path}: got ${keys.length} fetches, want at most ${most}: ${keys.join(' ')}`);
      assert.strictEqual(new Set(keys).size, keys.length, `${c.path}: fetched twice: ${keys.join(' ')}`);
    }
  });
}

// mostFetches is how many objects a case may need, the root included.
function mostFetches({ path, body, sent }) {
  const [at, query = ''] = path.replace('/api/v1', '').split('?');
  const rows = /include=/.test(query) ? body.split('"record_type"').length + body.split('"efp_list_nft_token_id"').length : 0;
  const back = /mutuals/.test(query) ? 1 : 0; // the followers, of whom mutuals are
  const beyondFirst = /tags=\w|term=\w|sort=|offset=|limit=/.test(query) ? 1 : 0; // one more shard: the longest list has two
  const isList = at.startsWith('/lists/') ? 1 : 0; // states towards followers are in its records
  if (/[sS]tateBatch$/.test(at)) {
    return 2 + JSON.parse(sent).length;
  }
  if (/(commonFollowers|relationships?)$/.test(at)) {
    return 6; // two buckets, the viewer's records, the leader's bucket by address or shard
  }
  if (/State$|recommended(\/details)?$/.test(at)) {
    return 4; // two buckets, and a list or the table
  }
  if (/simple-profile$/.test(at)) {
    return 5; // two files, and those for unknown addresses
  }
  if (/[fF]ollow(ing|ers)$|mutuals$/.test(at) && at !== '/leaderboard/following' && at !== '/leaderboard/followers') {
    return 3 + isList + beyondFirst + back + rows;
  }
  if (/leaderboard\/(ranked|all|search)/.test(at)) {
    return 4;
  }
  return 3; // the root and a file, or a bucket and what it names
}

// sameRows compares rows and found accounts with the answers for all lists of a site.
async function sameRows(base) {
  const fp = openSite(base);
  const { config, manifest } = await fp.root();
  const shards = await Promise.all(Object.keys(manifest).map(async (shard) => unpacked(await fetch(`${base}_manifest/${shard}`))));
  const lists = shards.flatMap(({ objects }) => objects.flatMap(({ key }) => key.match(/\/lists\/(\w+)\/details$/)?.[1] ?? []));
  assert.ok(lists.length > 3);
  const compare = config.api === 'efp' ? compareRows : compareFollowing;
  for (const token of lists) {
    const { address, primary_list, ens } = await fp.list(token).details();
    const account = { address, token: primary_list ?? '' };
    for (const user of [address, '0x' + address.slice(2).toUpperCase()]) {
      assert.deepStrictEqual(await fp.find(user), account, user);
    }
    const named = ens.name && (await fp.find(ens.name));
    const known = named && (config.api === 'efp' ? await fp.user(named.address).details() : named.token && (await fp.list(named.token).details()));
    if (known) {
      assert.deepStrictEqual(named, { address: known.address, token: known.primary_list ?? '' });
    }
    await compare(fp.list(token));
  }
  for (const nobody of ['nobody-has-this.eth', '100%', '\ud800', '..']) {
    assert.strictEqual(await fp.find(nobody), null);
  }
  const unknown = '0x' + 'f'.repeat(39) + '0';
  assert.deepStrictEqual(await fp.find(unknown), { address: unknown, token: '' });
  assert.deepStrictEqual(await fp.user(unknown).rows('following'), { total: 0, rows: [] });
  const fails = (asked, status) => assert.rejects(asked, (error) => error instanceof ApiError && error.status === status);
  await fails(fp.list('x').rows('following'), 400);
  await fails(fp.list('987654321').rows('following'), 404);
  await fails(fp.user('nobody-has-this.eth').rows('following'), 404);
  if (config.api !== 'efp') {
    await fails(fp.user(unknown).rows('followers'), 404);
  }
}

async function compareRows(list) {
  const pages = [0, 1000].map((offset) => list.allFollowing({ limit: 1000, offset, include: 'ens' }));
  const all = (await Promise.all(pages)).flatMap(({ following }) => following);
  const names = new Map(all.map(({ address, ens }) => [address, ens?.name ?? '']));
  for (const page of [{}, { limit: 2, offset: 1 }, { sort: 'earliest', limit: 1000 }, { sort: 'followers', limit: 9 }, { tags: ['block', 'top8'] }]) {
    const [held, { following }] = [await list.rows('following', page), await list.allFollowing(page)];
    assert.deepStrictEqual(held.rows.map((r) => [r.address, r.tags, r.name]), following.map((f) => [f.address, f.tags, names.get(f.address)]));
    const [holders, { followers }] = [await list.rows('followers', page), await list.allFollowers(page)];
    assert.deepStrictEqual(
      holders.rows.map((r) => [r.address, r.tags, r.token, r.state, new Date(r.added).toISOString()]),
      followers.map((f) => [f.address, f.tags, f.efp_list_nft_token_id, f.is_following + 2 * f.is_blocked + 4 * f.is_muted, f.updated_at]),
    );
    assert.ok(held.total >= following.length && (page.tags || held.total <= (page.offset ?? 0) + following.length || following.length === (page.limit ?? 10)));
  }
  for (const page of [{}, { limit: 2, offset: 1 }, { sort: 'followers', limit: 1000 }, { tags: ['top8'], limit: 1000 }]) {
    const [held, { following }] = [await list.rows('following', { ...page, follows: true }), await list.following(page)];
    assert.deepStrictEqual(held.rows.map((r) => [r.address, r.tags]), following.map((f) => [f.address, f.tags]));
    const [holders, { followers }] = [await list.rows('followers', { ...page, follows: true }), await list.followers(page)];
    assert.deepStrictEqual(holders.rows.map((r) => [r.address, r.tags]), followers.map((f) => [f.address, f.tags]));
  }
  const { rows } = await list.rows('following', { term: 'A', limit: Infinity });
  const found = (address) => address.includes('a') || names.get(address).toLowerCase().includes('a');
  assert.deepStrictEqual(rows.map(({ address }) => address), all.map(({ address }) => address).filter(found));
}

async function compareFollowing(list) {
  const all = [];
  for (let more = true; more; ) {
    const { following } = await list.searchFollowing({ limit: 100, offset: all.length });
    all.push(...following.map(({ data, tags, ens }) => ({ address: data, tags, name: ens.name, avatar: ens.avatar })));
    more = following.length;
  }
  const rows = async (params) => (await list.rows('following', params)).rows;
  assert.deepStrictEqual(await list.rows('following', { sort: 'earliest', limit: Infinity }), { total: all.length, rows: all });
  assert.deepStrictEqual(await rows({ limit: 3, offset: 2 }), all.toReversed().slice(2, 5));
  assert.deepStrictEqual(await rows({ term: '.ETH', sort: 'earliest', limit: 7 }), all.filter(({ name }) => name.includes('.eth')).slice(0, 7));
  assert.deepStrictEqual(await rows({ tags: ['top8'] }), all.filter(({ tags }) => tags.includes('top8')).toReversed().slice(0, 10));
}

// site makes a fetch of a site with these objects, which may change. It counts requests.
function site(objects) {
  const counts = {};
  const read = async (url) => {
    const key = new URL(url).pathname.slice(1);
    counts[key] = (counts[key] ?? 0) + 1;
    await new Promise((done) => setTimeout(done, 1));
    const body = objects[key];
    if (body instanceof Error) {
      throw body;
    }
    return typeof body === 'number' || body === undefined ? new Response('<Error/>', { status: body ?? 404 }) : new Response(body);
  };
  return { read, counts };
}
const root = (efp = true, more = {}) =>
  JSON.stringify({ format: 2, as_of: '2026-01-01T00:00:00Z', config: { base_path: 'api/v1', ...(efp && { api: 'efp' }), ...more }, user_bucket_digits: 1, token_bucket_digits: 1 });

test('types declare every method', () => {
  const types = readFileSync(new URL(folder + 'followpress.d.ts'), 'utf8');
  const methods = (name) => [...types.split(new RegExp(`interface ${name}\\b`))[1].split('\n}\n')[0].matchAll(/^  (\w+)\(/gm)].map(([, method]) => method)
    .filter((method, i, all) => method !== all[i - 1]); // one may be declared for several arguments
  const fp = openSite('https://bucket.example/');
  assert.deepStrictEqual(Object.keys(fp).sort(), methods('Site').sort());
  assert.deepStrictEqual(Object.keys(fp.user('a.eth')).sort(), [...methods('Both'), ...methods('UserMethods')].sort());
  assert.deepStrictEqual(Object.keys(fp.list('1')).sort(), [...methods('Both'), ...methods('ListMethods')].sort());
});

test('requests at the same time share their fetches, and objects are kept', async () => {
  const { read, counts } = site({ _site: root(), 'api/v1/stats': '{"stats":{}}' });
  const fp = openSite('https://bucket.example', { fetch: read });
  await Promise.all([fp.stats(), fp.stats(), fp.stats()]);
  await fp.stats();
  assert.deepStrictEqual(counts, { _site: 1, 'api/v1/stats': 1 });
});

test('objects are kept for as long and as many as the options say', async () => {
  const objects = { _site: root(), 'api/v1/lists/1/records': '{"records":[]}', 'api/v1/lists/2/records': '{"records":[]}' };
  const short = site(objects);
  let fp = openSite('https://bucket.example/', { fetch: short.read, maxAge: 0 });
  await fp.list('1').records();
  later(1);
  await fp.list('1').records();
  assert.strictEqual(short.counts['api/v1/lists/1/records'], 2);
  const few = site(objects);
  fp = openSite('https://bucket.example/', { fetch: few.read, maxLength: 300 });
  await fp.list('1').records();
  await fp.list('2').records();
  await fp.list('1').records();
  assert.strictEqual(few.counts['api/v1/lists/1/records'], 2);
});

test('a new root drops what was read of the old site', async () => {
  const objects = { _site: root(), 'api/v1/stats': '{"stats":1}', 'api/v1/discover': '{"latestFollows":[]}' };
  const fp = openSite('https://bucket.example/', { fetch: site(objects).read, maxAge: 60_000 });
  await fp.stats();
  objects._site = root(true, { changed: true });
  objects['api/v1/stats'] = '{"stats":2}';
  later(60_001);
  await fp.discover();
  assert.deepStrictEqual(await fp.stats(), { stats: 2 });
});

test('a site that is not live is read as it is, by simple requests', async () => {
  const { read, counts } = site({ _site: root(), 'api/v1/stats': '{"stats":1}' });
  const headers = [];
  const fp = openSite('https://bucket.example/', { fetch: (url, init) => (headers.push(init.headers), read(url)) });
  assert.deepStrictEqual(await fp.stats(), { stats: 1 });
  const after = fp.after('8453:1,10:2');
  assert.deepStrictEqual(await after.stats(), { stats: 1 });
  assert.strictEqual((await after.root()).live, undefined);
  assert.strictEqual((await after.ask('GET', 'stats')).heads, undefined);
  assert.strictEqual(after.seen(), null);
  assert.deepStrictEqual(headers.filter(Boolean), []);
  assert.deepStrictEqual(counts, { _site: 2, 'api/v1/stats': 1 });
});

test('of a live site everything is read anew, and the oldest object counts', async () => {
  const asked = [];
  let block = 7;
  const fp = openSite('https://live.example/', {
    fetch: async (url, init) => {
      const key = new URL(url).pathname.slice(1);
      asked.push([key, init.headers?.['X-After'], init.headers?.Prefer, init.cache]);
      const said = { 'X-Heads': `8453:${block}, 10:5`, 'X-As-Of': `2026-01-01T00:00:0${block}Z` };
      return new Response(key === '_site' ? root(true, {}).replace('{', '{"live":true,') : '{"stats":1}', { headers: said });
    },
  });
  await fp.stats();
  assert.deepStrictEqual(fp.seen(), { heads: { 8453: 7, 10: 5 }, asOf: '2026-01-01T00:00:07Z' });
  asked.length = 0;
  later(1); // what was read in the same millisecond is taken for new
  const after = fp.after({ 8453: 8, 10: 5 }, { wait: 3 });
  const first = after.root();
  await first;
  block = 8; // what is read from now on is newer than the root
  const a = await after.ask('GET', 'stats');
  assert.deepStrictEqual([a.heads, a.asOf], [{ 8453: 7, 10: 5 }, '2026-01-01T00:00:07Z']);
  const sent = '10:5,8453:8'; // as JavaScript orders such members
  assert.deepStrictEqual(asked, [
    ['_site', undefined, undefined, 'reload'],
    ['_site', sent, 'wait=3', 'no-store'],
    ['api/v1/stats', sent, 'wait=0', 'no-store'],
  ]);
  await fp.stats();
  assert.strictEqual(asked.length, 3);
});

test('objects of two sites are read again', async () => {
  const address = '0x' + '1'.repeat(40);
  const row = (n) => [address.slice(0, 38) + String(n).padStart(4, '0'), [], 0, '', ''];
  const shard = (total) => JSON.stringify({ list: '7', total, shard: 0, shards: 1, shard_size: 1000, entries: Array.from({ length: total }, (_, n) => row(n)) });
  const bucket = (held) => JSON.stringify({ bucket: '7', lists: { 7: [address, true, held, 0, []] } });
  const objects = { _site: root(), '_search/tokens/7': bucket(30), '_search/lists/7/0': shard(40) };
  const { read } = site(objects);
  const reread = [];
  const fp = openSite('https://bucket.example/', {
    fetch: async (url, init) => {
      const response = await read(url);
      if (init.cache === 'reload') {
        reread.push(url);
      } else if (url.endsWith('/lists/7/0')) {
        objects['_search/tokens/7'] = bucket(40); // the rest of the new site is there now
      }
      return response;
    },
  });
  const { following } = await fp.list('7').allFollowing({ limit: 1 });
  assert.strictEqual(following[0].address, row(39)[0]);
  assert.strictEqual(reread.length, 3);
});

test('rows of two sites are read again, and what cannot be read throws', async () => {
  const address = '0x' + '1'.repeat(40);
  const bucket = (held, rows) => JSON.stringify({ lists: { 7: [address, true, held, 0, rows] } });
  const objects = { _site: root(), '_search/tokens/7': bucket(1, []) };
  const { read, counts } = site(objects);
  const fp = openSite('https://bucket.example/', {
    fetch: async (url) => {
      const response = await read(url);
      if (url.endsWith('tokens/7')) {
        objects['_search/tokens/7'] = bucket(1, [[address, [], 5, 'a.eth', '']]);
      }
      return response;
    },
  });
  assert.deepStrictEqual(await fp.list('7').rows('following'), { total: 1, rows: [{ address, tags: [], followers: 5, name: 'a.eth', avatar: '' }] });
  assert.ok(counts._site > 1);
  await assert.rejects(fp.find('a.eth'), (error) => error instanceof ApiError && error.status === 503);
});

test('a list of the specification that has shards and few entries can be searched', async () => {
  const entries = Array.from({ length: 12 }, (_, n) => ({ version: 1, record_type: 'address', data: '0x' + String(n).padStart(40, '0'), tags: [], ens: { name: n + '.eth', avatar: '' } }));
  const objects = {
    _site: root(false),
    '_search/lists/7/0': JSON.stringify({ list: '7', total: 12, shard: 0, shards: 1, shard_size: 1000, entries }),
    'api/v1/lists/7/searchFollowing': JSON.stringify({ following: entries.slice(0, 10) }),
  };
  const fp = openSite('https://bucket.example/', { fetch: site(objects).read });
  const found = async (params) => (await fp.list('7').searchFollowing(params)).following;
  assert.deepStrictEqual(await found({ limit: 5, offset: 9 }), entries.slice(9));
  assert.deepStrictEqual(await found({ term: '11.eth' }), entries.slice(11));
  assert.deepStrictEqual(await found({ offset: 2000 }), []);
  // What is not there is not asked for: browsers write that to their console.
  const small = site({ _site: root(false), 'api/v1/lists/8/searchFollowing': JSON.stringify({ following: entries.slice(0, 9) }) });
  const { total } = await openSite('https://bucket.example/', { fetch: small.read }).list('8').rows('following');
  assert.deepStrictEqual([total, small.counts], [9, { _site: 1, 'api/v1/lists/8/searchFollowing': 1 }]);
  assert.strictEqual((await fp.list('7').rows('following', { limit: 3 })).rows[0].address, entries[11].data);
});

test('what cannot be read is 503', async () => {
  for (const broken of [500, new TypeError('refused'), '<html>', '{}', '{"format":3}']) {
    const objects = { _site: broken };
    const fp = openSite('https://bucket.example/', { fetch: site(objects).read, maxAge: 60_000 });
    const a = await fp.answer('GET', '/api/v1/stats');
    assert.strictEqual(a.status, 503);
    assert.strictEqual(JSON.parse(a.body).title, 'Service Unavailable');
    assert.ok(a.cause);
    await assert.rejects(fp.stats(), (error) => error instanceof ApiError && error.status === 503);
    later(60_001);
    Object.assign(objects, { _site: root(), 'api/v1/stats': '{}' });
    assert.deepStrictEqual(await fp.stats(), {});
  }
});

test('an unknown option is an error that lists the options', () => {
  const known = ['fetch', 'maxAge', 'maxLength', 'timeout', 'keys', 'allowRollback', 'refreshedKeys', 'verified', 'checked'];
  const base = 'https://bucket.example/';
  openSite(base, Object.fromEntries(known.map((name) => [name, undefined])));
  const message = `openSite: unknown option maxage: use ${known.join(', ')}`;
  const { fetch } = globalThis;
  for (const open of [() => openSite(base, { maxage: 1 }), () => install({ base, maxage: 1 })]) {
    assert.throws(open, { name: 'TypeError', message });
  }
  assert.strictEqual(globalThis.fetch, fetch, 'a failed install leaves fetch alone');
});

test('an unknown option, or one of another type, is a TypeError before any request', async () => {
  const { read, counts } = site({ _site: root() });
  const fp = openSite('https://bucket.example/', { fetch: read });
  const [user, list] = [fp.user('a.eth'), fp.list('7')];
  const page = 'use limit, offset, sort, tags, include';
  for (const [call, message] of [
    [() => user.followers({ limt: 3 }), `users/a.eth/followers: unknown option limt: ${page}`],
    [() => user.followers(3), `users/a.eth/followers: unknown option 3: ${page}`],
    [() => user.followers('limit=3'), `users/a.eth/followers: unknown option limit=3: ${page}`],
    [() => user.followers({ limit: '3' }), 'users/a.eth/followers: option limit: got string, want number'],
    [() => user.followers({ tags: 3 }), 'users/a.eth/followers: option tags: got number, want string'],
    [() => user.followers({ sort: ['latest'] }), 'users/a.eth/followers: option sort: got array, want string'],
    [() => user.details({ cache: 'fresh' }), 'users/a.eth/details: unknown option cache: use none'],
    [() => user.commonFollowers({ leader: 1 }), 'users/a.eth/commonFollowers: option leader: got number, want string'],
    [() => user.notifications({ opcode: '3' }), 'users/a.eth/notifications: option opcode: got string, want number'],
    [() => list.records({ includeTags: 'false' }), 'lists/7/records: option includeTags: got string, want boolean'],
    [() => list.rows('following', { include: 'ens' }), 'rows: unknown option include: use limit, offset, sort, tags, term, follows'],
    [() => list.rows('following', { follows: 1 }), 'rows: option follows: got number, want boolean'],
    [() => fp.leaderboard('followers', { offset: 3 }), 'leaderboard/followers: unknown option offset: use limit'],
    [() => fp.ranked({ order: 'asc' }), 'leaderboard/ranked: unknown option order: use limit, offset, sort, direction'],
    [() => fp.search('fox', { sort: '' }), 'leaderboard/search: unknown option sort: use limit, offset, term'],
    [() => fp.search(7), 'leaderboard/search: option term: got number, want string'],
    [() => fp.discover({ limit: true }), 'discover: option limit: got boolean, want number'],
    [async () => fp.after('1:2', { wait: '3' }), 'after: option wait: got string, want number'],
    [async () => openSite('https://bucket.example/', { keys: 'followpress' }), 'openSite: option keys: got string, want array'],
  ]) {
    await assert.rejects(call, { name: 'TypeError', message });
  }
  assert.deepStrictEqual(counts, {});
});

test('a URL without a site says so', async () => {
  for (const wrong of ['bucket', 'bucket.example/site', undefined, {}]) {
    assert.throws(() => openSite(wrong), (error) => error instanceof TypeError && error.message.includes(`openSite: ${wrong}`), String(wrong));
  }
  for (const [found, says] of [
    [undefined, 'There is no site at https://bucket.example/x/.'],
    [403, 'There is no site at https://bucket.example/x/.'],
    ['<!doctype html>', 'There is no site at https://bucket.example/x/.'],
    ['{}', 'There is no site at https://bucket.example/x/.'],
    [500, 'The data cannot be read at the moment. Try again in a few seconds.'],
    ['{"format":3}', 'The data cannot be read at the moment. Try again in a few seconds.'],
  ]) {
    const fetch = async () => (typeof found === 'string' ? new Response(found) : new Response('', { status: found ?? 404 }));
    const fp = openSite('https://bucket.example/x', { fetch });
    await assert.rejects(fp.stats(), (error) => error instanceof ApiError && error.status === 503 && error.message === says, found);
  }
});

test('a bucket that may not be listed answers 403 for what is not there', async () => {
  const fp = openSite('https://bucket.example/', { fetch: site({ _site: root(false), 'api/v1/lists/1/details': 403 }).read });
  const a = await fp.answer('GET', '/api/v1/lists/1/details');
  assert.strictEqual(a.status, 404);
  assert.strictEqual(JSON.parse(a.body).status, 404);
});

test('names that objects of JavaScript have are names like others', async () => {
  const objects = { _site: root(true, { names: 'lookup' }) };
  for (const digit of '0123456789abcdef') {
    objects['_search/users/' + digit] = '{"bucket":"","names":{},"accounts":{}}';
  }
  const fp = openSite('https://bucket.example/', { fetch: site(objects).read });
  for (const name of ['constructor', '__proto__', 'tostring']) {
    await assert.rejects(fp.user(name).account(), (error) => error.status === 404);
  }
  assert.strictEqual((await fp.answer('GET', '/api/v1/users/a.eth/constructor')).status, 404);
  assert.strictEqual((await fp.answer('GET', '/api/v1/constructor')).status, 404);
});

const hour = 3_600_000;
const asOf = Date.parse('2026-01-01T00:00:00Z');
const account = '0x' + '1'.repeat(40);
// An operation of list 7 on account, so many hours before the site's time.
const operation = (hours, opcode, tag = '') => [asOf - hours * hour, '7', '0x' + '7'.repeat(40), 'seven.eth', '', opcode, tag];
const news = (entries, total = entries.length, more = {}) =>
  JSON.stringify({ address: account, total, shards: Math.ceil(total / 1000), entries, ...more });
const historySite = (objects) => site({ _site: root(true, { history_window: '999h0m0s' }), ...objects });

test('notifications are those of the interval, by two fetches', async () => {
  const entries = [operation(0, 1), operation(1, 3, 'top8'), operation(168, 4, 'é<'), operation(168.5, 2), operation(999, 3, 'Top8')];
  const { read, counts } = historySite({ [`_search/notifications/${account}`]: news(entries) });
  const user = openSite('https://bucket.example/', { fetch: read }).user(account.toUpperCase().replace('X', 'x'));
  const { summary, notifications } = await user.notifications();
  assert.deepStrictEqual(summary, {
    interval: '168:00:00(hrs)', opcode: 'all', total: 3, total_follows: 1, total_unfollows: 0, total_tags: 1, total_untags: 1,
  });
  assert.deepStrictEqual(notifications[2], {
    address: '0x' + '7'.repeat(40), name: 'seven.eth', avatar: null, token_id: '7', action: 'untag', opcode: 4,
    op: `0x01040101${'1'.repeat(40)}c3a93c`, tag: 'é<', updated_at: '2025-12-25T00:00:00.000Z',
  });
  const opcodes = async (params) => (await user.notifications(params)).notifications.map(({ opcode }) => opcode);
  for (const [params, want] of [
    [{ interval: 'hour' }, [1, 3]],
    [{ interval: 'HOUR' }, [1, 3, 4]],
    [{ interval: 'all' }, [1, 3, 4, 2, 3]],
    [{ interval: 'constructor', limit: 2, offset: 1 }, [3, 4]],
    [{ interval: 'all', opcode: 3 }, [3, 3]],
    [{ interval: 'all', opcode: 3, offset: 1, limit: 1 }, [3]],
    [{ interval: 'all', opcode: 33 }, [1, 3, 4, 2, 3]],
    [{ interval: 'all', tag: 'top8' }, [3]],
    [{ interval: 'all', tag: '' }, [1, 3, 4, 2, 3]],
    [{ tag: 'é<' }, [4]],
    [{ offset: 1000 }, []],
  ]) {
    assert.deepStrictEqual(await opcodes(params), want, JSON.stringify(params));
  }
  assert.deepStrictEqual(await opcodes({ interval: 'all', tag: '%' }), []);
  assert.deepStrictEqual(counts, { _site: 1, [`_search/notifications/${account}`]: 1 });
});

test('older operations are read as far as a page needs them', async () => {
  const rows = Array.from({ length: 2500 }, (_, n) => (n % 500 === 7 ? operation(n / 1000, 4, 'y') : operation(n / 1000, 3, 'x')));
  const key = (n) => `_search/notifications/${n ? `older/${account}/${n}` : account}`;
  const objects = Object.fromEntries([0, 1, 2].map((n) => [key(n), news(rows.slice(1000 * n, 1000 * n + 1000), 2500, n && { shard: n })]));
  const { read, counts } = historySite(objects);
  const fetched = async (params) => {
    Object.keys(counts).forEach((name) => delete counts[name]);
    const { notifications } = await openSite('https://bucket.example/', { fetch: read }).user(account).notifications(params);
    return [notifications.length, Object.keys(counts).length, notifications[0]?.updated_at];
  };
  const at = (n) => new Date(rows[n][0]).toISOString();
  assert.deepStrictEqual(await fetched({ limit: 1000 }), [1000, 2, at(0)]);
  assert.deepStrictEqual(await fetched({ limit: 3, offset: 999 }), [3, 3, at(999)]);
  assert.deepStrictEqual(await fetched({ limit: 1000, offset: 2001 }), [499, 3, at(2001)]); // the shard between is not read
  assert.deepStrictEqual(await fetched({ limit: 2, offset: 1, opcode: 4 }), [2, 3, at(507)]);
  assert.deepStrictEqual(await fetched({ limit: 9, opcode: 4 }), [5, 4, at(7)]);
  for (const filter of [{ opcode: 3 }, { tag: 'x' }]) {
    assert.deepStrictEqual(await fetched({ limit: 2, offset: 1000, ...filter }), [2, 3, at(1002)]);
  }
  assert.deepStrictEqual(await fetched({ limit: 9, opcode: 2, interval: 'hour' }), [0, 3, undefined]); // what is older than an hour ends it
});

test('an account without news has an empty page, and a site without history no route', async () => {
  const empty = { interval: '24:00:00(hrs)', opcode: '2', total: 0, total_follows: 0, total_unfollows: 0, total_tags: 0, total_untags: 0 };
  const fp = openSite('https://bucket.example/', { fetch: historySite({}).read });
  assert.deepStrictEqual(await fp.user(account).notifications({ interval: 'day', opcode: 2 }), { summary: empty, notifications: [] });
  const old = site({ _site: root() });
  const before = openSite('https://bucket.example/', { fetch: old.read });
  for (const method of ['notifications', 'notificationsAtom']) {
    await assert.rejects(before.user(account)[method](), (error) => error instanceof ApiError && error.status === 404);
  }
  await assert.rejects(before.list('7').activity(), (error) => error instanceof ApiError && error.status === 404);
  assert.deepStrictEqual(old.counts, { _site: 1, '_errors/no-such-route': 1 });
});

test('activity is about the other account, of a list that there is', async () => {
  const { read } = historySite({
    '_search/tokens/7': JSON.stringify({ lists: { 7: [account, false, 0, 0, []] } }),
    '_search/activity/7': JSON.stringify({ list: '7', total: 1, shards: 1, entries: [[asOf, '0x' + '9'.repeat(40), '', '', 3, '\u2028']] }),
  });
  const fp = openSite('https://bucket.example/', { fetch: read });
  const { activity } = await fp.list('7').activity();
  assert.deepStrictEqual(activity, [{
    address: '0x' + '9'.repeat(40), name: null, avatar: null, token_id: '7', action: 'tag', opcode: 3, op: `0x01030101${'9'.repeat(40)}e280a8`,
    tag: '\u2028', updated_at: '2026-01-01T00:00:00.000Z',
  }]);
  for (const [list, status] of [['x', 400], ['22', 404]]) { // 22 is in the bucket of 7
    await assert.rejects(fp.list(list).activity(), (error) => error instanceof ApiError && error.status === status, list);
  }
});

test('operations of two sites are read again', async () => {
  const rows = Array.from({ length: 1002 }, (_, n) => operation(n / 1000, 1));
  const older = `_search/notifications/older/${account}/1`;
  const objects = {
    _site: root(true, { history_window: '999h0m0s' }),
    [`_search/notifications/${account}`]: news(rows.slice(0, 1000), 1001),
    [older]: news(rows.slice(1000), 1002, { shard: 1 }),
  };
  const { read, counts } = site(objects);
  const fetch = async (url) => {
    const response = await read(url);
    if (url.endsWith(older)) {
      objects[`_search/notifications/${account}`] = news(rows.slice(0, 1000), 1002); // the rest of the new site is there now
    }
    return response;
  };
  const { notifications } = await openSite('https://bucket.example/', { fetch }).user(account).notifications({ offset: 1000 });
  assert.deepStrictEqual([notifications.length, counts[older]], [2, 2]);
  for (const broken of [undefined, news(rows.slice(1000), 1002, { shard: 2 })]) {
    objects[older] = broken;
    const { status } = await openSite('https://bucket.example/', { fetch }).ask('GET', `users/${account}/notifications?offset=1000`);
    assert.strictEqual(status, 503, broken);
  }
});

test('the shim passes on what it does not answer, and can be undone', async () => {
  const before = globalThis.fetch;
  const asked = [];
  globalThis.fetch = async (url) => (asked.push(String(url.url ?? url)), new Response('{}'));
  try {
    const own = globalThis.fetch;
    const { read } = site({ _site: root(), 'api/v1/stats': '{"stats":{}}' });
    const uninstall = install({ base: 'https://bucket.example', fetch: read });
    const shim = globalThis.fetch;
    assert.notStrictEqual(shim, own);
    for (const url of ['https://elsewhere.example/api/v1/stats', 'https://data.ethfollow.xyz/api/v10/stats', new URL('https://a.example/'), '/relative']) {
      await fetch(url);
    }
    assert.strictEqual(asked.length, 4);
    assert.deepStrictEqual(await (await fetch('https://data.ethfollow.xyz/api/v1/stats')).json(), { stats: {} });
    assert.deepStrictEqual(await (await fetch(new Request('https://api.ethfollow.xyz/api/v1/stats#part'))).json(), { stats: {} });
    assert.strictEqual((await fetch('https://data.ethfollow.xyz/api/v1/stats', { method: 'OPTIONS' })).status, 204);
    await assert.rejects(fetch('https://data.ethfollow.xyz/api/v1/stats', { signal: AbortSignal.abort() }), { name: 'AbortError' });
    const post = { method: 'post', body: new Blob(['["a.eth"]']) };
    assert.strictEqual((await fetch('https://data.ethfollow.xyz/api/v1/lists/x/buttonStateBatch', post)).status, 400);
    assert.strictEqual((await fetch(new Request('https://data.ethfollow.xyz/api/v1/stats', { ...post, method: 'POST' }))).status, 405);
    assert.strictEqual(asked.length, 4);
    uninstall();
    assert.strictEqual(globalThis.fetch, own);
    await shim('https://data.ethfollow.xyz/api/v1/stats');
    assert.strictEqual(asked.length, 5);
  } finally {
    globalThis.fetch = before;
  }
});

// stalling is a fetch of a site whose objects stall if stalls says so: before the headers, or in the body.
function stalling(stalls) {
  const root = { format: 2, config: { api: 'efp', base_path: 'api/v1' } };
  const seen = { running: 0, most: 0, begun: 0 };
  const fetch = async (url, { signal }) => {
    seen.begun++;
    seen.most = Math.max(seen.most, ++seen.running);
    signal.addEventListener('abort', () => seen.running--);
    const never = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    const how = stalls(url);
    if (how === 'headers') {
      await never;
    }
    await new Promise((done) => setTimeout(done, 1));
    const text = async () => {
      await (how === 'body' && never);
      seen.running--;
      return JSON.stringify(url.endsWith('_site') ? root : {});
    };
    return { status: 200, ok: true, text };
  };
  return { fetch, seen };
}

for (const how of ['headers', 'body']) {
  test(`a fetch that stalls in its ${how} ends, and others go on`, async () => {
    const { fetch, seen } = stalling((url) => /\/0x/.test(url) && how);
    const site = openSite('http://bucket.example/', { fetch, timeout: 50 });
    const stalled = Array.from({ length: 20 }, (_, i) => site.ask('GET', `users/0x${String(i).padStart(40, '0')}/account`));
    assert.strictEqual((await site.ask('GET', 'stats')).status, 200);
    for (const a of await Promise.all(stalled)) {
      assert.strictEqual(a.status, 503);
      assert.match(a.cause.message, /no answer within 50 ms/);
    }
    assert.strictEqual(seen.most, 8);
    assert.strictEqual(seen.begun, 22);
  });
}
