// The API of a site, in a browser and without a server: every answer is made from the
// objects in the bucket. answer gives exactly the answers of the followpress server, the
// named functions give their JSON. See docs/client.md.

// typeOf returns the type of an option or parameter. A list may also be an array.
const typeOf = (name) =>
  /^(limit|offset|opcode|start|wait|max|time)/.test(name) ? 'number'
  : /^(includeT|follows|allow)/.test(name) ? 'boolean'
  : /ed$|^fetch/.test(name) ? 'function'
  : /eys$/.test(name) ? 'array' : 'string';

// checkOptions throws a TypeError for options that are unknown or of another type.
function checkOptions(where, options, known) {
  for (const [name, value] of Object.entries(/^[ou]/.test(typeof options) ? (options ?? {}) : { [options]: 0 })) {
    const got = Array.isArray(value) ? 'array' : typeof value;
    const want = typeOf(name);
    if (!known.includes(name)) {
      throw new TypeError(`${where}: unknown option ${name}: use ${known.join(', ') || 'none'}`);
    }
    if (value != null && got !== want && !(got === 'array' && /^(tags|include)$/.test(name))) {
      throw new TypeError(`${where}: option ${name}: got ${got}, want ${want}`);
    }
  }
}

/**
 * openSite returns the API of the site at a URL: the folder or bucket that has _site. It throws a TypeError if base
 * is not a URL, and for an option that is unknown or of another type.
 */
export function openSite(base, options = {}) {
  checkOptions('openSite', options, ['fetch', 'maxAge', 'maxLength', 'timeout', 'keys', 'allowRollback', 'refreshedKeys', 'verified', 'checked']);
  base = String(base).replace(/\/*$/, '/');
  try {
    new URL(base, globalThis.location?.href);
  } catch (cause) {
    throw new TypeError(`openSite: ${base} is no URL of a site: use https://HOST/ or https://HOST/PATH/`, { cause });
  }
  return api(base, options, reader(base, options));
}

// api returns the methods of a site. With since, everything is read anew from a live site, by
// requests that wait for the blocks.
function api(base, options, shared, since = 0, blocks = '', wait = 0) {
  const waiting = since && reader(base, options, blocks, wait);
  let seen = null;

  // reads chooses a reader. Only a live site is asked for blocks: a bucket may refuse requests with such headers.
  const reads = async (round) => (since && (await shared('_site', since, round))?.json.live ? waiting : shared);

  // settle does work with the site, and returns an answer for what it throws. An object that
  // does not go with another one is from another site, which is being published: then
  // everything is read again.
  async function settle(work) {
    let again = 0;
    for (let pause = 100; ; pause *= 4) {
      const round = {};
      let read;
      const get = async (key) => {
        const object = await read(key, again, round);
        if (object?.heads && !(round.oldest?.asOf <= object.asOf)) {
          round.oldest = object;
        }
        return object;
      };
      try {
        let a;
        try {
          read = await reads(round);
          a = await work(await open(get));
        } catch (error) {
          if (!(error instanceof Problem)) {
            throw error;
          }
          a = problem(error.status, error.message, error.message, await get('_errors/' + error.message));
        }
        const { heads, asOf } = round.oldest ?? {};
        seen = heads ? { heads, asOf } : null;
        return { ...a, ...seen };
      } catch (cause) {
        if (cause !== mixed || pause > 1600) {
          const detail =
            cause === noSite ? `There is no site at ${base}.` : 'The data cannot be read at the moment. Try again in a few seconds.';
          return { ...problem(503, 'Service Unavailable', detail), cause };
        }
        await new Promise((done) => setTimeout(done, pause));
        again = Date.now();
      } finally {
        round.over = true;
      }
    }
  }

  const ask = (method, path, body, whole) => settle((site) => resolve(site, method, path, body, whole));

  // value is the JSON of an answer, unless it is an error.
  function value(a) {
    if (a.location) {
      return a.location;
    }
    const json = a.value ?? (/json/.test(a.type) ? JSON.parse(a.body) : a.body);
    if (a.status !== 200) {
      throw new ApiError(a.status, json, a.cause);
    }
    return json;
  }

  // about does work with a request about a user or a list that no route has.
  const about = async (folder, subject, work) =>
    value(await settle(async (site) => ({ status: 200, value: await work(new Asked(site, { folder, subject: bytesOf(subject) })) })));

  /** call returns the JSON of an endpoint below the base path, or throws an ApiError. known are its parameters. */
  async function call(path, params, known = [], body) {
    checkOptions(path, params, known);
    const query = Object.entries(params ?? {})
      .filter(([, given]) => given !== undefined && given !== null)
      .map(([name, given]) => `${name}=${encodeURIComponent(given)}`);
    const text = body && JSON.stringify(body);
    return value(await ask(body ? 'POST' : 'GET', path + (query.length ? '?' + query.join('&') : ''), text, false));
  }

  const methods = (folder, subject, table) => {
    const start = `${folder}/${encodeURIComponent(subject)}/`;
    const all = {
      rows: async (kind, params) => {
        checkOptions('rows', params, ['limit', 'offset', 'sort', 'tags', 'term', 'follows']);
        return about(folder, subject, (r) => pageOf(r, kind, params));
      },
    };
    for (const name of Object.keys(table)) {
      const method = name.replace(/^\*\/|[-./](.)/g, (_, letter = '') => letter.toUpperCase());
      if (name[0] === '*') {
        all[method] = (user) => call(start + name.replace('*', encodeURIComponent(user)));
      } else if (table[name].post) {
        all[method] = (body) => call(start + name, {}, [], body);
      } else {
        all[method] = (params) => call(start + name, params, table[name].params);
      }
    }
    return all;
  };

  return {
    answer: (method, path, body) => ask(method, path, body, true),
    ask: (method, path, body) => ask(method, path, body, false),
    user: (user) => methods('users', user, userRoutes),
    list: (tokenID) => methods('lists', tokenID, listRoutes),
    find: (user) => about('users', user, find).catch((error) => (error.status === 404 ? null : missing(error))),
    exportState: (tokenID) => call('exportState/' + encodeURIComponent(tokenID)),
    leaderboard: (name, params) => call('leaderboard/' + encodeURIComponent(name), params, ['limit']),
    ranked: (params) => call('leaderboard/ranked', params, board.params),
    search: (term, params) => call('leaderboard/search', { term, ...params }, search.params),
    leaderboardCount: () => call('leaderboard/count'),
    stats: () => call('stats'),
    discover: (params) => call('discover', params, some.params),
    root: async () => {
      const read = await reads({});
      return (await open((key) => read(key, 0, {}))).root;
    },
    after: (blocks, given = {}) => {
      checkOptions('after', given, ['wait']);
      return api(base, options, shared, Date.now(), blocksOf(blocks), given.wait ?? 10);
    },
    seen: () => seen,
  };
}

/** ApiError is an answer with another status than 200. */
export class ApiError extends Error {
  constructor(status, problem, cause) {
    super(problem.detail, { cause });
    this.name = 'ApiError';
    this.status = status;
    this.problem = problem;
  }
}

// What ends a request: a problem is an answer; mixed may be over in a moment; any other error is a 503.
class Problem extends Error {
  constructor(name) {
    super(name);
    this.status = /^bad-/.test(name) ? 400 : /^no-/.test(name) ? 404 : name === 'body-too-large' ? 413 : 405;
  }
}
const mixed = new Error('mixed');
const noSite = new Error('no site: there is no _site, or something else');

const svg = 'image/svg+xml';
const problemType = 'application/problem+json';
const reply = (body, status = 200, type = 'application/json') => ({ status, type, body });

function problem(status, title, detail, stored) {
  const body = stored?.text ?? JSON.stringify({ type: 'about:blank', title, status, detail, response: detail });
  return reply(body, status, problemType);
}

/* Objects */

const keyURL = (key) => key.split('/').map(encodeURIComponent).join('/');

// blocksOf returns blocks as X-After has them: a text as it is, {8453: 123} as 8453:123.
function blocksOf(blocks) {
  const text = typeof blocks === 'string' ? blocks : Object.entries(blocks).map((b) => b.join(':')).join();
  if (!/^\d+:\d+( *, *\d+:\d+)*$/.test(text)) {
    throw new TypeError(`after: ${text}: use CHAIN:BLOCK or { CHAIN: BLOCK }`);
  }
  return text;
}

// reader returns read(key, since, round): the object with a key, null if there is none. What
// was read before since, or too long ago, is read again. Requests at the same time share one
// fetch, which is not begun if all their rounds are over by then.
function reader(
  base,
  { fetch = (...request) => globalThis.fetch(...request), maxAge = 300_000, maxLength = 32 << 20, timeout = 10_000, ...options },
  blocks,
  wait,
) {
  timeout += blocks ? 1000 * wait : 0;
  const kept = new Map(); // the least recently used first
  let length = 0;
  let rootText;
  const proof = options.keys && import('./proof.js').then((module) => module.proof(base, fetch, timeout, options));
  const drop = (key, entry) => {
    if (kept.get(key) === entry) {
      kept.delete(key);
      length -= entry.length;
    }
  };

  let free = 8; // fetches that may begin
  const waiting = [];

  async function load(key, since, entry) {
    if (free) {
      free--;
    } else {
      await new Promise((go) => waiting.push(go));
    }
    const abort = new AbortController();
    let response, text, timer;
    try {
      if (entry.rounds.every(({ over }) => over)) {
        drop(key, entry);
        throw new Error('over');
      }
      // A fetch that somebody else wrote may not know the signal.
      const late = new Promise((_, reject) => {
        timer = setTimeout(() => {
          const error = new Error(`no answer within ${timeout} ms`);
          reject(error);
          abort.abort(error);
        }, timeout);
      });
      // The root, which is read first, is what waits.
      const headers = { 'X-After': blocks, Prefer: 'wait=' + (key === '_site' ? wait : 0) };
      const init = { signal: abort.signal, ...(since && { cache: 'reload' }), ...(blocks && { cache: 'no-store', headers }) };
      const work = async () => {
        const url = base + keyURL(key);
        const sent = fetch(url, init);
        sent.catch(String); // who checks waits for it later
        response = proof ? await (await proof)(key, url, init, sent) : await sent;
        text = await response.text();
      };
      await Promise.race([work(), late]);
    } catch (error) {
      throw error.key ? error : new Error(`${key}: ${error}`, { cause: error });
    } finally {
      clearTimeout(timer);
      const next = waiting.shift();
      if (next) {
        next();
      } else {
        free++;
      }
    }
    // A bucket that may not be listed answers 403 for what is not there.
    if (/40[34]/.test(response.status)) {
      return null;
    }
    if (!response.ok) {
      throw new Error(`${key}: status ${response.status}`);
    }
    const heads = response.headers?.get('x-heads');
    return {
      text,
      heads: heads && Object.fromEntries(heads.split(', ').map((head) => head.split(':').map(Number))),
      asOf: response.headers?.get('x-as-of'),
      get json() {
        return (this.parsed ??= JSON.parse(text));
      },
    };
  }

  return function read(key, since, round) {
    const known = kept.get(key);
    if (known && known.at >= Math.max(since, Date.now() - maxAge)) {
      kept.delete(key);
      kept.set(key, known);
      known.rounds?.push(round);
      return known.object;
    }
    if (known) {
      drop(key, known);
    }
    const entry = { at: Date.now(), length: 0, rounds: [round] };
    entry.object = load(key, since, entry).then(
      (object) => {
        entry.rounds = null;
        if (key === '_site' && object?.text !== rootText) {
          rootText = object?.text; // another site: what was read before is of the old one
          kept.forEach((old, name) => old.at < entry.at && drop(name, old));
        }
        if (kept.get(key) === entry) {
          entry.length = 100 + (object?.text.length ?? 0);
          length += entry.length;
        }
        for (const [name, old] of kept) {
          if (length <= maxLength) {
            break;
          }
          drop(name, old);
        }
        return object;
      },
      (error) => {
        drop(key, entry);
        throw error;
      },
    );
    kept.set(key, entry);
    return entry.object;
  };
}

// open reads the root and returns what requests need of the site.
async function open(get) {
  let root;
  try {
    root = (await get('_site'))?.json;
  } catch (error) {
    throw error instanceof SyntaxError ? noSite : error; // a page, say
  }
  if (!root?.format) {
    throw noSite;
  }
  if (root.format !== 2) {
    throw new Error(`_site: format ${root.format}, not 2`);
  }
  return {
    get,
    root,
    config: root.config,
    efp: root.config.api === 'efp',
    base: root.config.base_path + '/',
    // must reads an object that every site has, or that another one names.
    must: async (key) => (await get(key)) ?? missing(mixed),
    shard: async (key) => ((await get('_search/' + key)) ?? missing(mixed)).json,
  };
}

/* Routes */

const file = {};
const page = { params: ['limit', 'offset', 'sort', 'tags', 'include'], most: 1000 };
const board = { params: ['limit', 'offset', 'sort', 'direction'], most: 0, usual: 50, compute: ranked };
const search = { params: ['limit', 'offset', 'term'], most: 100 };
const some = { params: ['limit', 'offset'], most: 1000 };
const news = { params: ['limit', 'offset', 'interval', 'opcode', 'start', 'tag'], most: 1000, compute: history };

const bothRoutes = {
  account: file,
  details: file,
  badges: file,
  stats: file,
  tags: file,
  taggedAs: file,
  following: { ...page, file: true, compute: (r) => following(r) },
  allFollowing: { ...page, compute: (r) => following(r, true) },
  followers: { ...page, file: true, compute: (r) => followers(r) },
  allFollowers: { ...page, compute: (r) => followers(r, true) },
  latestFollowers: { ...some, compute: (r) => followers(r) },
  searchFollowing: { ...search, file: true, compute: searchFollowing },
  searchFollowers: { ...search, compute: searchFollowers },
  allFollowingAddresses: { compute: relations },
  recommended: { ...some, compute: relations },
  'recommended/details': { ...some, compute: relations },
  qr: { type: svg, compute: qr },
  '*/followerState': { compute: relations },
  '*/buttonState': { compute: relations },
};
const userRoutes = {
  ...bothRoutes,
  lists: file,
  'primary-list': { compute: relations },
  ens: { compute: relations },
  'simple-profile': { compute: relations },
  'list-records': { compute: relations },
  commonFollowers: { params: ['limit', 'offset', 'leader'], most: 1000, usual: 1000, compute: relations },
  '*/relationship': { compute: relations },
  relationships: { params: ['limit', 'offset', 'direction', 'tag'], most: 1000, usual: 100, compute: relations },
  mutuals: { ...page, compute: (r) => followers(r, false, 'mutuals') },
  'ens/avatar': { compute: relations, redirect: true },
  notifications: news,
  'notifications.atom': { ...news, usual: 50, type: 'application/atom+xml; charset=utf-8' },
};
const listRoutes = {
  ...bothRoutes,
  records: { params: ['includeTags'], file: true, compute: relations },
  buttonStateBatch: { post: true, compute: relations },
  activity: news,
};
const boards = ['followers', 'following', 'blocked', 'blocks', 'muted', 'mutes', 'mutuals'];
const otherRoutes = {
  'leaderboard/ranked': { ...board, file: true },
  'leaderboard/all': board,
  'leaderboard/search': { params: ['limit', 'offset', 'term'], most: 1000, usual: 1000, compute: searchBoard },
  'leaderboard/count': file,
  stats: file,
  discover: { ...some, file: true, compute: discover },
};
// The routes of the specification, which a site has that is not efp.
const specRoutes = ['records', 'details', 'badges', 'searchFollowing'];

// match finds the route of an endpoint. subject is the user or token ID of the path, as
// bytes; other the second user.
function match(site, segments) {
  const [folder, subject, object, last] = segments;
  const count = segments.length;
  if (folder === 'leaderboard' && count === 2 && (site.efp ? boards : boards.slice(0, 2)).includes(subject)) {
    return { route: { params: ['limit'], most: 0, board: subject, file: true }, name: subject };
  }
  if ((folder === 'users' || folder === 'lists') && count > 2) {
    const table = folder === 'users' ? userRoutes : listRoutes;
    const other = count === 4 && /^((follower|button)State|relationship)$/.test(last) ? object : undefined;
    const name = other === undefined ? segments.slice(2).join('/') : '*/' + last;
    const spec = folder === 'users' ? ['searchFollowing'] : specRoutes;
    const found = name[0] === '*' && other === undefined ? undefined : own(table, name);
    const shown = found?.compute === history ? site.config.history_window : found;
    return shown && (site.efp || spec.includes(name)) ? { route: found, name, folder, subject, other } : null;
  }
  if (site.efp && folder === 'exportState' && count === 2) {
    return { route: { compute: relations }, name: folder, folder: 'lists', subject };
  }
  const found = site.efp && own(otherRoutes, segments.join('/'));
  return found ? { route: found, name: segments.join('/') } : null;
}

// resolve answers a request as the server does: the method is checked first, then the form
// of the path and the parameters, then whether there is what was asked for.
async function resolve(site, method, target, body, whole) {
  if (method === 'OPTIONS') {
    return reply('', 204, '');
  }
  const [path, query] = split(target, '?');
  const segments = path.replace(/^\//, '').split('/').map(percentDecode);
  const base = whole ? site.config.base_path.split('/') : [];
  const inside = segments.length > base.length && base.every((s, i) => s === segments[i]);
  const found = inside ? match(site, segments.slice(base.length)) : null;
  const reads = method === 'GET' || method === 'HEAD';
  if (found?.route.post && method !== 'POST') {
    throw new Problem('post-only');
  }
  const key = segments.join('/');
  const isKey = whole && !inside && internal.test(key) && !segments.some((s) => s.includes('/'));
  const stored = isKey && (site.config.explorer || !/^(index|_explore|_reports)/.test(key)) && (await site.get(key));
  if (!found?.route.post && !reads && (found || stored || !site.efp)) {
    throw new Problem('method-not-allowed');
  }
  if (stored) {
    return reply(stored.text, 200, /^_errors/.test(key) ? problemType : types[key.split('.').pop()]);
  }
  if (!found) {
    throw new Problem('no-such-route');
  }
  const value = await answer(new Asked(site, found, body), query);
  if (found.route.redirect) {
    return { ...reply('', 302, ''), location: value };
  }
  // The server escapes two line ends of older JavaScript.
  const text = (object) => JSON.stringify(object).replace(/[\u2028\u2029]/g, (end) => '\\u' + end.charCodeAt(0).toString(16));
  return reply(typeof value === 'string' ? value : text(value), 200, found.route.type);
}

const internal = /^(_(site|(variants|search|errors|manifest|unknown|client|explore|reports|log)(\/[\w=-][\w=.-]*)+)|openapi\.json|index\.html)$/;
const types = {
  js: 'text/javascript',
  ts: 'text/plain; charset=utf-8',
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
};

async function answer(r, query) {
  const { route, site } = r;
  if (route.post) {
    r.body = bytes(r.body ?? '');
    if (r.body.length > 131072) {
      throw new Problem('body-too-large');
    }
  }
  r.check();
  const q = (r.q = parseQuery(route, query, route.most || site.config.leaderboard_max));
  if (!route.compute && !route.board) {
    return r.stored(r.name);
  }
  if (route.board) {
    const key = q.limit === 10 ? `${site.base}leaderboard/${route.board}` : `_variants/leaderboard/${route.board}/limit=${q.limit}`;
    return (await site.must(key)).text;
  }
  if (route.file && !q.changed) {
    return r.stored(r.name);
  }
  return route.compute(r);
}

const missing = (error) => {
  throw error;
};

/* Parameters */

const split = (text, at) => {
  const i = text.indexOf(at);
  return i < 0 ? [text, ''] : [text.slice(0, i), text.slice(i + 1)];
};

const bytes = (text) => (typeof text === 'string' ? new TextEncoder().encode(text) : text);
const decode = (utf8) => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(utf8);

// percentDecode decodes percent-encoding once, to bytes: a text of characters up to U+00FF.
// A percent sign without two hexadecimal digits after it stands for itself.
const percentDecode = (text) =>
  Array.from(bytes(text), (byte) => String.fromCharCode(byte))
    .join('')
    .replace(/%([0-9a-f]{2})/gi, (_, digits) => String.fromCharCode(parseInt(digits, 16)));

// utf8 decodes such bytes; null if they are not UTF-8.
function utf8(text) {
  try {
    return decode(Uint8Array.from(text, (c) => c.charCodeAt(0)));
  } catch {
    return null;
  }
}

const lower = (value) => value.toLowerCase();

// fold returns a text in lower case, letter by letter, and composed.
const fold = (text) => Array.from(text.normalize(), lower).join('').normalize();

// What include may add.
const words = ['blocked', 'ens', 'muted', 'mutuals'];

const items = (value) => value.split(',').filter(Boolean).map(utf8);

function number(name, value, least, most) {
  if (!/^\d{1,18}$/.test(value) || Number(value) < least) {
    throw new Problem('bad-' + name);
  }
  return Math.min(Number(value), most);
}

const parsers = {
  limit: (value, most) => number('limit', value, 1, most),
  offset: (value) => number('offset', value, 0, 2 ** 31 - 1),
  term: (value) => {
    if (value.length > 255) {
      throw new Problem('bad-term');
    }
    // Names are UTF-8, so a term that is not matches none: like half a surrogate pair.
    return (utf8(value) ?? '\udc00').replace(/^\p{White_Space}+|\p{White_Space}+$/gu, '').normalize();
  },
  includeTags: (value) => {
    if (value !== 'true' && value !== 'false') {
      throw new Problem('bad-include-tags');
    }
    return value === 'true';
  },
  sort: lower,
  tags: items,
  include: items,
};

// parseQuery reads the parameters that a route has. Of a repeated one the first counts,
// of include all. changed says whether the answer is another than without parameters.
function parseQuery(route, query, most) {
  const usual = Math.min(route.usual ?? 10, most);
  const q = { limit: usual, offset: 0, term: '', includeTags: true, sort: '', direction: '', tags: [], include: [] };
  const seen = new Set();
  for (const pair of query.replace(/\+/g, '%20').split('&')) {
    const [name, value] = split(pair, '=').map(percentDecode);
    if (route.params?.includes(name) && (name === 'include' || !seen.has(name))) {
      seen.add(name);
      const given = (parsers[name] ?? String)(value, most);
      q[name] = name === 'include' ? q.include.concat(given) : given;
    }
  }
  q.include = words.filter((word) => q.include.includes(word));
  if (q.leader === '') {
    throw new Problem('bad-leader');
  }
  if (route.usual === 100 && !(q.tag && /^(in(coming)?|out(going)?)$/.test(q.direction))) {
    throw new Problem('bad-relationships');
  }
  if (route.compute === ranked) {
    q.sort = q.sort === 'blocked' ? 'blocks' : /^(blocks|followers|following|top8)$/.test(q.sort) ? q.sort : '';
    q.direction = lower(q.direction) === 'asc';
  } else if (q.sort !== 'followers' && q.sort !== 'earliest') {
    q.sort = '';
  }
  q.changed = q.limit !== usual || q.offset || q.term || !q.includeTags || q.sort || q.direction || q.tags.length || q.include.length;
  return q;
}

// userOf returns the address or the name, in their normal forms, that bytes are.
function userOf(encoded) {
  const text = utf8(encoded) ?? '';
  if (isAddress(lower(text))) {
    return lower(text);
  }
  const name = fold(text.replace(/\ufe0f/g, ''));
  const unsafe = /^\.{0,2}$|[\p{White_Space}\p{Cc}\/\\%?#\ufffe\uffff]/u.test(name);
  if (unsafe || isAddress(name) || bytes(name).length > 255) {
    throw new Problem('no-such-name');
  }
  return name;
}

const isAddress = (user) => /^0x[0-9a-f]{40}$/.test(user);

function checkToken(text) {
  if (!/^(0|[1-9]\d{0,77})$/.test(text)) {
    throw new Problem('bad-token-id');
  }
}

/* What a request is about */

// Asked is a request of a known route. A node is what a bucket tells about a user or a
// list: address, token (of the list; '' for no primary list), held and followers (how many
// rows there are) and, except of a name, the rows if they are few.
class Asked {
  constructor(site, { route, name, folder, subject, other }, body) {
    Object.assign(this, { site, route, name, folder, subject, other, body });
    this.isList = folder === 'lists';
  }

  // check checks the form of a token ID. A malformed user is a name that nobody has.
  check() {
    if (this.isList) {
      checkToken(this.subject);
    }
  }

  async user(bytes) {
    const user = userOf(bytes);
    const bucket = await this.site.shard('users/' + sha256(user).slice(0, this.site.root.user_bucket_digits));
    if (bucket.users) {
      const token = own(bucket.users, user) ?? (isAddress(user) ? '' : missing(new Problem('no-such-name')));
      return { address: isAddress(user) ? user : '', token };
    }
    if (isAddress(user)) {
      const [token, held, followers, rows] = own(bucket.accounts, user) ?? ['', 0, 0, []];
      return { address: user, token, held, followers, followerRows: rows };
    }
    const [address, token, held, followers] = own(bucket.names, user) ?? missing(new Problem('no-such-name'));
    return { address, token, held, followers };
  }

  async list(token) {
    const bucket = await this.site.shard('tokens/' + sha256(token).slice(0, this.site.root.token_bucket_digits));
    const [address, primary, held, followers, rows] = own(bucket.lists, token) ?? missing(new Problem('no-such-list'));
    return { address, token, primary, held, followers, heldRows: rows };
  }

  // node is that of the subject.
  node() {
    return this.isList ? this.list(this.subject) : this.user(this.subject);
  }

  // token is the list that the subject's answers are about, '' for none. A list may be none
  // that there is.
  async token() {
    return this.isList ? this.subject : (await this.node()).token;
  }

  // stored is the file of the subject, as text.
  async stored(name) {
    const { site } = this;
    if (!this.folder) {
      return (await site.must(site.base + name)).text;
    }
    if (this.isList) {
      return ((await site.get(`${site.base}lists/${this.subject}/${name}`)) ?? missing(new Problem('no-such-list'))).text;
    }
    let user = userOf(this.subject);
    if (!isAddress(user) && site.config.names === 'lookup') {
      user = (await this.user(this.subject)).address;
    }
    const found = await site.get(`${site.base}users/${user}/${name}`);
    if (found) {
      return found.text;
    }
    if (!isAddress(user)) {
      throw new Problem('no-such-name');
    }
    if (name === 'searchFollowing') {
      return '{"following":[]}';
    }
    return (await site.must('_unknown/' + name)).text.replaceAll('0x' + '0'.repeat(40), user);
  }

  // part is such a file, decoded.
  async part(name) {
    return JSON.parse(await this.stored(name));
  }
}

// bytesOf are the bytes of a text, in which a percent sign stands for itself.
const bytesOf = (text) => percentDecode(String(text).replaceAll('%', '%25'));

// find tells which account and list a user is. A site of the specification knows the
// account of a list only.
async function find(r) {
  const { address, token } = await r.user(r.subject);
  const details = !address && token && (await r.site.must(`${r.site.base}lists/${token}/details`));
  return { address: details ? details.json.address : address, token };
}

const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/* Lists and followers */

// stateOf here and the filter of heldBy are copies of rules (StateOf and Kind.Holds of site/rules/rules.go).
// The cases of TestAnswersInNode hold them to those.
const blocks = (tags) => tags.includes('block');
const mutes = (tags) => tags.includes('mute');
const follow = (tags) => !blocks(tags) && !mutes(tags);
const follows = (row) => follow(row.tags);
// A state is bits, as in rows: 1 follow, 2 block, 4 mute.
const stateOf = (tags) => (tags ? follow(tags) + 2 * blocks(tags) + 4 * mutes(tags) : 0);
const shownState = (tags) => {
  const bits = stateOf(tags);
  return { follow: !!(bits & 1), block: !!(bits & 2), mute: !!(bits & 4) };
};
const time = (milliseconds) => new Date(milliseconds).toISOString();
const chosen = (keep, wanted) => (row) => (!keep || keep(row)) && (!wanted.length || row.tags.some((tag) => wanted.includes(tag)));

const heldRow = ([address, tags, followers, name, avatar]) => ({ address, tags, followers, name, avatar });
const followerRow = ([token, address, tags, state, added, followers, name, avatar, header, mutualsRank]) =>
  ({ token, address, tags, state, added, followers, name, avatar, header, mutualsRank });

// heldRows and followerRows describe what rowsOf reads.
const heldRows = (r, node) => ({
  key: 'lists/' + node.token,
  total: node.held,
  oldestFirst: true,
  decode: heldRow,
  few: async () => node.heldRows ?? (await r.list(node.token)).heldRows,
});
const followerRows = (r, node) => ({
  key: 'followers/' + node.address,
  total: node.followers,
  decode: followerRow,
  few: async () => node.followerRows ?? (await r.user(node.address)).followerRows,
});

const shardSize = 1000;

// rowsOf returns a page of rows. keep says which rows count, without it all do. plain says
// that it keeps all rows or all follows: the first 100 of them are in the head.
async function rowsOf(r, source, { sort, offset, limit }, keep, plain) {
  const { key, total, decode } = source;
  const backwards = (sort === 'earliest') !== !!source.oldestFirst;
  const shards = Math.ceil(total / shardSize);
  // Shards are sorted as they come: what is sorted by parts is sorted fast as a whole.
  const sorted = (rows) => rows.sort((a, b) => b.followers - a.followers || (a.address < b.address ? -1 : 1));
  const ready = (entries) => {
    const rows = entries.map(decode).filter(keep ?? Boolean);
    return sort === 'followers' ? sorted(rows) : backwards ? rows.reverse() : rows;
  };
  const shard = async (n) => ready(checked(await r.site.shard(`${key}/${n}`), total, n).entries);
  const order = Array.from({ length: shards }, (_, n) => (backwards ? shards - 1 - n : n));
  let all;
  if (total <= 20) {
    const few = total ? await source.few() : [];
    all = few.length === total ? ready(few) : missing(mixed);
  } else if (shards > 1 && plain && offset + limit <= 100) {
    all = ready(checked(await r.site.shard(key + '/head'), total).entries);
  } else if (shards === 1 || sort === 'followers') {
    all = (await Promise.all(order.map(shard))).flat();
    if (shards > 1) {
      sorted(all);
    }
  }
  if (all) {
    return all.slice(offset, offset + limit);
  }
  const rows = [];
  let skip = offset;
  for (const n of order) {
    const size = Math.min(shardSize, total - n * shardSize);
    if (!keep && skip >= size) {
      skip -= size;
      continue;
    }
    const found = await shard(n);
    rows.push(...found.slice(skip, skip + limit - rows.length));
    skip = Math.max(0, skip - found.length);
    if (rows.length >= limit) {
      break;
    }
  }
  return rows;
}

// checked returns a shard, or a head, that goes with what is known about the whole.
function checked(shard, total, n) {
  if (shard.total !== total || (n !== undefined && shard.shard !== n)) {
    throw mixed;
  }
  return shard;
}

const record = ({ address, tags }) => ({ version: 1, record_type: 'address', data: address, address, tags });

// included adds to entries what the request includes. states says whether that is the tags of the rows, too.
function included(r, rows, entries, mutual, states) {
  const has = (word) => r.q.include.includes(word);
  return !r.q.include.length ? entries : Promise.all(entries.map(async (entry, i) => {
    const row = rows[i];
    const all = { ...entry };
    if (has('mutuals')) {
      all.is_mutual = mutual(row);
    }
    if (states && has('blocked')) {
      all.is_blocked = blocks(row.tags);
    }
    if (states && has('muted')) {
      all.is_muted = mutes(row.tags);
    }
    if (has('ens') && row.name) {
      all.ens = profile((await r.site.must(`${r.site.base}users/${row.address}/account`)).json);
    }
    return all;
  }));
}

// isMutual reports whether a follower and the account that it follows follow each other.
const isMutual = (row, { address }) => follows(row) && !!((row.primary ?? row.state) & 1) && row.address !== address;

// chosenBy returns which rows a page has, null for all, and whether these are all rows or all follows.
function chosenBy({ q: { tags, include } }, all) {
  const [blocked, muted] = ['blocked', 'muted'].map((word) => include?.includes(word));
  const shown = (row) => (blocked || !blocks(row.tags)) && (muted || !mutes(row.tags));
  return [all && !tags.length ? null : chosen(all ? null : shown, tags), !tags.length && (all || !(blocked || muted))];
}

const profile = ({ address, ens }) =>
  ens.name ? { name: ens.name, address, avatar: ens.avatar, records: ens.records, updated_at: ens.updated_at } : undefined;

async function following(r, all) {
  const node = await r.node();
  const rows = await rowsOf(r, heldRows(r, node), r.q, ...chosenBy(r, all));
  const whole = { sort: '', offset: 0, limit: Infinity };
  const mutuals = r.q.include.includes('mutuals') && rows.length ? await rowsOf(r, followerRows(r, node), whole, (row) => isMutual(row, node)) : [];
  const known = new Set(mutuals.map(({ address }) => address));
  return { following: await included(r, rows, rows.map(record), (row) => known.has(row.address), true) };
}

// followerPage returns followers; their state is that of the subject's list towards them.
async function followerPage(r, keep, plain) {
  const node = await r.node();
  const rows = await rowsOf(r, followerRows(r, node), r.q, keep, plain);
  if (!r.isList || node.primary || !rows.length) {
    return rows;
  }
  const tags = new Map(await heldBy(r, node.token));
  return rows.map((row) => ({ ...row, primary: row.state, state: stateOf(tags.get(row.address)) }));
}

const flags = ({ state }) => ({ is_following: !!(state & 1), is_blocked: !!(state & 2), is_muted: !!(state & 4) });

async function followers(r, all, name = 'followers') {
  const node = await r.node();
  const mutual = (row) => isMutual(row, node);
  let [keep, plain] = chosenBy(r, all);
  if (name === 'mutuals') {
    [keep, plain] = [chosen(mutual, r.q.tags), false];
  }
  const rows = await followerPage(r, keep, plain);
  const entries = rows.map((row) =>
    ({ efp_list_nft_token_id: row.token, address: row.address, tags: row.tags, ...flags(row), updated_at: time(row.added) }));
  return { [name]: await included(r, rows, entries, mutual) };
}

function matches(term) {
  const folded = fold(term);
  return (row) => row.address.includes(folded) || fold(row.name).includes(folded);
}

async function searchFollowing(r) {
  if (!r.site.efp) {
    return specSearch(r);
  }
  const { term } = r.q;
  const match = matches(term);
  const keep = (row) => follows(row) && (!term || match(row));
  const rows = await rowsOf(r, heldRows(r, await r.node()), { ...r.q, sort: 'earliest' }, keep, !term);
  return { following: rows.map((row) => ({ ...record(row), ens: { name: row.name, avatar: row.avatar } })) };
}

async function searchFollowers(r) {
  const { term } = r.q;
  const match = matches(term);
  const rows = await followerPage(r, (row) => follows(row) && (!term || match(row)), !term);
  return {
    followers: rows.map((row) => ({
      efp_list_nft_token_id: row.token, address: row.address, ens: { name: row.name, avatar: row.avatar }, tags: row.tags, ...flags(row),
    })),
  };
}

// specRows describes rows of a site of the specification. A list with fewer than 10 is in
// its file as a whole; of others the shard with that number tells how many there are.
async function specRows(r, n) {
  const { token } = r.isList ? { token: r.subject } : await r.user(r.subject);
  const key = 'lists/' + token;
  const file = token ? await r.site.get(`${r.site.base}${key}/searchFollowing`) : { json: { following: [] } };
  const { following } = (file ?? missing(r.isList ? new Problem('no-such-list') : mixed)).json;
  const shard = following.length < 10 ? null : await r.site.get(`_search/${key}/${n}`);
  const { entries, total } = shard?.json ?? { entries: following, total: following.length };
  const decode = (entry) => ({ address: entry.data, tags: entry.tags, ...entry.ens, entry });
  return { key, total, oldestFirst: true, decode, few: () => entries };
}

async function specSearch(r) {
  const { term, offset } = r.q;
  const source = await specRows(r, term ? 0 : Math.floor(offset / shardSize));
  const rows = await rowsOf(r, source, { ...r.q, sort: 'earliest' }, term ? matches(term) : null);
  return { following: rows.map((row) => row.entry) };
}

// pageOf is a page of what a list holds, or of who holds an account.
async function pageOf(r, kind, { limit = 10, offset = 0, sort, tags = [], term = '', follows: only } = {}) {
  r.check();
  r.q = { limit, offset, sort };
  const isPart = tags.length || term;
  const wanted = chosen(matches(term), [].concat(tags));
  const keep = only ? (row) => follows(row) && wanted(row) : isPart ? wanted : null;
  const node = r.site.efp && (await r.node());
  if (kind === 'followers') {
    const rows = node ? await followerPage(r, keep, !isPart) : missing(new Problem('no-such-route'));
    return { total: node.followers, rows };
  }
  const source = node ? heldRows(r, node) : await specRows(r, 0);
  const rows = await rowsOf(r, source, r.q, keep, node && !isPart);
  return { total: source.total, rows: node ? rows : rows.map(({ entry, ...row }) => row) };
}

// recordsOf are the records of a list, [] of none.
async function recordsOf(r, token) {
  if (!token) {
    return [];
  }
  const found = await r.site.get(`${r.site.base}lists/${token}/records`);
  return (found ?? missing(token === r.subject ? new Problem('no-such-list') : mixed)).json.records;
}

// heldBy are the addresses that a list holds, with their tags: [address, tags]. The filter is Kind.Holds.
const heldBy = async (r, token) =>
  (await recordsOf(r, token))
    .filter((entry) => entry.version === 1 && entry.record_type === 'address' && isAddress(entry.data))
    .map((entry) => [entry.data, entry.tags]);

const profileURL = (r, address) => r.site.config.profile_url.replaceAll('{address}', address);

async function qr(r) {
  const address = r.isList ? (await r.node()).address : await addressOf(r, r.subject);
  return (await import('./qr.js')).picture(profileURL(r, address));
}

async function history(r) {
  const subject = r.isList ? (await r.node()).token : await addressOf(r, r.subject);
  return (await import('./history.js')).answer(r, subject, { checked, utf8, userOf, profileURL });
}

async function relations(r) {
  const tools = { addressOf, bytesOf, counts, decode, follow, followerRows, follows, heldBy, profile, profileURL, record, recordsOf, rowsOf, shownState, stateOf, table, take, utf8, utf8Bytes: bytes, Problem };
  return (await import('./relations.js')).answers[r.name.replace('*/', '')](r, tools);
}

/* States */

// addressOf is the address of a user. It needs no object for an address.
async function addressOf(r, bytes) {
  const user = userOf(bytes);
  return isAddress(user) ? user : (await r.user(bytes)).address;
}

/* Tables */

// table yields the entries of shards from a row on that there is.
async function* table(r, key, total, from = 0, size = shardSize) {
  let n = Math.floor(from / size);
  do {
    const shard = await r.site.shard(`${key}/${n}`);
    total ??= shard.total;
    yield* checked(shard, total, n).entries.slice(Math.max(0, from - n * size));
  } while (++n * size < total);
}

async function take(rows, count, keep) {
  const taken = [];
  for await (const row of rows) {
    if ((!keep || keep(row)) && taken.push(row) >= count) {
      break;
    }
  }
  return taken;
}

const counts = (values, names, suffix) => Object.fromEntries(names.map((name, i) => [name + suffix, String(values[i])]));
function boardOf(r, rows) {
  const updated_at = time(Date.parse(r.site.root.as_of));
  const results = rows.map(([address, name, avatar, header, ranks, values]) => ({
    address,
    name: name || null,
    avatar: avatar || null,
    header: header || null,
    ...counts(ranks, ['mutuals', 'followers', 'following', 'blocks', 'top8'], '_rank'),
    ...counts(values, ['mutuals', 'following', 'followers', 'blocks', 'top8'], ''),
    updated_at,
  }));
  return { last_updated: updated_at, results };
}

async function ranked(r) {
  const { sort, direction, offset } = r.q;
  const key = sort ? 'ranked/' + sort : 'ranked';
  const { total } = await r.site.shard(key + '/0');
  const limit = Math.min(r.q.limit, total - offset);
  if (limit <= 0) {
    return boardOf(r, []);
  }
  const from = direction ? total - offset - limit : offset;
  let rows = await take(table(r, key, total, from, sort ? 10_000 : shardSize), limit);
  if (sort) {
    rows = await Promise.all(rows.map(async (place) => {
      const n = Math.floor(place / shardSize);
      return checked(await r.site.shard('ranked/' + n), total, n).entries[place % shardSize];
    }));
  }
  return boardOf(r, direction ? rows.reverse() : rows);
}

async function searchBoard(r) {
  const { term, offset, limit } = r.q;
  const match = matches(term);
  const found = ([address, name]) => match({ address, name });
  return boardOf(r, [...term].length > 1 ? (await take(table(r, 'ranked'), offset + limit, found)).slice(offset) : []);
}

async function discover(r) {
  const { latestFollows } = await r.site.shard('discover');
  return { latestFollows: latestFollows.slice(r.q.offset, r.q.offset + r.q.limit) };
}

/* SHA-256: that of browsers needs a secure context, which a page over http is not. */

const fraction = (root) => ((root - Math.floor(root)) * 2 ** 32) | 0;
const primes = [];
for (let n = 2; primes.length < 64; n++) {
  if (primes.every((p) => n % p)) {
    primes.push(n);
  }
}
const constants = primes.map((p) => fraction(Math.cbrt(p)));
const start = primes.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
const turn = (x, n) => (x >>> n) | (x << (32 - n));

function sha256(text) {
  const message = bytes(text);
  const blocks = new DataView(new ArrayBuffer(Math.ceil((message.length + 9) / 64) * 64));
  message.forEach((byte, i) => blocks.setUint8(i, byte));
  blocks.setUint8(message.length, 0x80);
  blocks.setUint32(blocks.byteLength - 4, message.length * 8);
  let hash = start;
  for (let at = 0; at < blocks.byteLength; at += 64) {
    const w = [];
    let [a, b, c, d, e, f, g, h] = hash;
    for (let i = 0; i < 64; i++) {
      const [x, y] = [w[i - 15], w[i - 2]];
      w[i] = i < 16
        ? blocks.getInt32(at + 4 * i)
        : (w[i - 16] + w[i - 7] + (turn(x, 7) ^ turn(x, 18) ^ (x >>> 3)) + (turn(y, 17) ^ turn(y, 19) ^ (y >>> 10))) | 0;
      const one = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + constants[i] + w[i];
      const two = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      [a, b, c, d, e, f, g, h] = [(one + two) | 0, a, b, c, (d + one) | 0, e, f, g];
    }
    hash = [a, b, c, d, e, f, g, h].map((x, i) => (x + hash[i]) | 0);
  }
  return hash.map((x) => (x >>> 0).toString(16).padStart(8, '0')).join('');
}
