// The service worker in a made-up browser: sw.js is the first argument, the list of its files the second.
// Throws for a promise that is not kept.

import { readFileSync } from 'node:fs';

const same = (what, got, want) => {
  if (JSON.stringify(got) !== JSON.stringify(want)) {
    throw new Error(`${what}: got ${JSON.stringify(got)}, want ${JSON.stringify(want)}`);
  }
};

class Kept {
  all = new Map();
  url = (request) => String(request.url ?? request);
  keys = async () => [...this.all.keys()].map((url) => new Request(url));
  match = async (request) => this.all.get(this.url(request))?.clone();
  delete = async (request) => this.all.delete(this.url(request));
  async put(request, response) {
    this.all.delete(this.url(request)); // as the specification says: the last one put is the last key
    this.all.set(this.url(request), response);
  }
}

const scope = 'https://site.example/below/_explore/';
const stores = new Map();
const caches = {
  open: async (name) => stores.get(name) ?? stores.set(name, new Kept()).get(name),
  keys: async () => [...stores.keys()],
  delete: async (name) => stores.delete(name),
  match: async (request) => (await Promise.all([...stores.values()].map((store) => store.match(request)))).find(Boolean),
};

let asked = [];
let network; // (url) => Response, or throws
const fetch = async (request) => {
  const url = String(request.url ?? request);
  asked.push(url);
  return network(url);
};

function start() {
  const listeners = {};
  const messages = [];
  const self = {
    registration: { scope, unregister: async () => messages.push('unregistered') },
    skipWaiting: async () => messages.push('takes over'),
    clients: { get: async (id) => id && { postMessage: (message) => messages.push(message) }, claim: async () => {} },
    addEventListener: (type, listener) => (listeners[type] = listener),
  };
  const soon = (done, wait) => setTimeout(done, wait / 100);
  new Function('self', 'caches', 'fetch', 'setTimeout', readFileSync(process.argv[2], 'utf8'))(self, caches, fetch, soon);
  const send = async (type, event) => {
    const waiting = [];
    let answer;
    listeners[type]({ clientId: 'page', ...event, waitUntil: (promise) => waiting.push(promise), respondWith: (promise) => (answer = promise) });
    const response = await answer;
    for (let i = 0; i < waiting.length; i++) {
      await waiting[i];
    }
    return response;
  };
  const get = (url, mode = 'cors', headers = new Headers()) => send('fetch', { request: { url: new URL(url, scope).href, method: 'GET', mode, headers } });
  return { send, get, messages };
}

const down = () => {
  throw new TypeError('Failed to fetch');
};
const text = (body, status = 200) => () => new Response(body, { status });
const seen = () => stores.get(`followpress ${scope} seen`).all;
const names = JSON.parse(process.argv[3]);
const script = names.find((name) => name.endsWith('.js'));
const types = { html: 'text/html', js: 'text/javascript', css: 'text/css' };
const typed = (body, ending) => new Response(body, { headers: { 'content-type': types[ending] } });
const pageWith = (...files) => files.map((file) => `<script src="${file}">`).join('') + 'page';
const files = (url) => {
  const ending = url.split('.').pop();
  return ending === 'html' ? typed(pageWith(...names), ending) : typed('file', ending);
};

// Without all files as they are meant, nothing is installed, and it is tried again: one is not there, one is a
// page that the host has instead, or the page is of another version.
let worker = start();
for (const broken of [
  (url) => (url.endsWith('.css') ? new Response('', { status: 404 }) : files(url)),
  (url) => (url.endsWith(script) ? typed(pageWith(script), 'html') : files(url)),
  (url) => (url.endsWith('.html') ? typed(pageWith(script, 'explorer-0THER000.js'), 'html') : files(url)),
  (url) => (url.endsWith('.html') ? typed('sign in', 'html') : files(url)),
]) {
  network = broken;
  await worker.send('install', {}).then(() => same('an install without all files', 'done', 'failed'), () => {});
}
// Where index.html is another word for its folder, the page comes from there.
const from = (response, members) => Object.defineProperties(response, Object.fromEntries(Object.entries(members).map(([name, value]) => [name, { value }])));
network = (url) => from(files(url), { redirected: url.endsWith('.html') });
await worker.send('install', {});
network = () => from(new Response(''), { type: 'opaqueredirect', status: 0, ok: false });
same('page that is elsewhere', (await worker.get('index.html', 'navigate')).type, 'opaqueredirect');
await worker.send('message', { data: { takeOver: true } });
same('after it was installed, and when it is reminded', worker.messages, ['takes over', 'takes over']);
stores.set(`followpress ${scope} old files`, new Kept());
stores.set('followpress https://site.example/other/_explore/ old files', new Kept());
stores.set('of somebody else', new Kept());
await worker.send('activate', {});
same('caches after an update', [...stores.keys()].filter((name) => !name.includes(script)), ['followpress https://site.example/other/_explore/ old files', 'of somebody else']);

// Streams of a live site, and what is asked for after a block, are left to the browser.
network = text('object');
same('a stream', await worker.get('../_live/events'), undefined);
same('after a block', await worker.get('../_site', 'cors', new Headers({ 'X-After': '8453:1' })), undefined);

// The page comes from the network, or else is the last one; its files need no network.
network = () => typed(pageWith(script) + ' again', 'html');
same('page', await (await worker.get('index.html', 'navigate')).text(), pageWith(script) + ' again');
network = () => typed(pageWith('explorer-0THER000.js'), 'html');
same('page of another version', await (await worker.get('index.html', 'navigate')).text(), pageWith('explorer-0THER000.js'));
network = () => typed('a list of files', 'html');
same('folder', await (await worker.get('./', 'navigate')).text(), 'a list of files');
network = down;
same('page offline goes with the files', await (await worker.get('index.html?x#/a/b', 'navigate')).text(), pageWith(script) + ' again');
const before = [...stores].map(([name, { all }]) => [name, [...all.keys()]]);
network = () => typed('old', 'js');
same('file of another version', await (await worker.get('old-00000000.js')).text(), 'old');
same('what is kept after that', [...stores].map(([name, { all }]) => [name, [...all.keys()]]), before);
asked = [];
same('file', await (await worker.get(script)).text(), 'file');
same('requests for a file', asked, []);

// Objects come from the network, and else are those seen before; the page hears of it once.
network = text('new');
same('object', await (await worker.get('../_site')).text(), 'new');
network = down;
worker.messages.length = 0;
same('object offline', await (await worker.get('../_site')).text(), 'new');
await worker.get('../_site');
same('messages offline', worker.messages, [{ offline: true }]);
network = text('error', 503);
same('object instead of an error', await (await worker.get('../_site')).text(), 'new');
let arrive;
network = () => new Promise((done) => (arrive = () => done(new Response('late'))));
const slow = worker.get('../_site');
await new Promise((done) => setTimeout(done, 200));
arrive();
same('object of a slow network', await (await slow).text(), 'new');
network = down;
same('object that came late', await (await worker.get('../_site')).text(), 'late');
network = text('newer');
same('object online', await (await worker.get('../_site')).text(), 'newer');
same('messages online', worker.messages, [{ offline: true }, { offline: false }]);
network = text('error', 500);
same('error of an object not seen', (await worker.get('../_search/users/0')).status, 500);
network = down;
await worker.get('../_search/users/0').then(() => same('an error', 'kept', 'not kept'), () => {});

// What is not there is known too.
for (const status of [404, 403]) {
  network = text('', status);
  await worker.get('../absent' + status);
  network = down;
  same('absent, offline', (await worker.get('../absent' + status)).status, status);
}

// Other hosts, other places of this one, and what is not read are left to the browser.
asked = [];
same('other', [await worker.get('https://img.example/a.png'), await worker.get('https://site.example/x'), await worker.get('top', 'navigate')], [undefined, undefined, undefined]);
same('requests to others', asked, []);

// No more than 1,000 objects, the oldest go first; those that every view needs stay.
network = text('x');
await worker.get('top');
for (let i = 0; i < 1100; i++) {
  await worker.get('../api/' + i);
}
same('objects', seen().size, 1000);
const has = (name) => seen().has(new URL(name, scope).href);
same('which objects', ['../_site', 'top', '../api/101', '../api/102', '../api/1099'].map(has), [true, true, false, true, true]);

// No more than 50 MiB, also after the worker was stopped and started again.
worker = start();
const large = 'x'.repeat(12 << 20);
network = text(large);
for (let i = 0; i < 5; i++) {
  await worker.get('../large/' + i);
}
same('large objects', [0, 1, 2, 3, 4].map((i) => has('../large/' + i)), [false, true, true, true, true]);
network = text(large + large);
await worker.get('../larger');
same('one that is too large', has('../larger'), false);

// A page that was there before says what it has read.
network = text('before');
await worker.send('message', { data: { seen: [scope + '../_site', new URL('../early', scope).href, 'https://img.example/b.png', scope + script] } });
same('what was read before', [has('../early'), [...seen().keys()].some((url) => url.includes('img.example') || url.includes(script))], [true, false]);

// Without the explorer, the worker goes with all that it has kept; not while only its page is missing.
worker.messages.length = 0;
network = (url) => (url.endsWith('sw.js') ? new Response('worker') : new Response('', { status: 404 }));
same('copied with an encoded hash sign', (await worker.get('index.html%23/a/b%20c', 'navigate')).headers.get('location'), scope + 'index.html#/a/b%20c');
same('page that is missing', (await worker.get('index.html', 'navigate')).status, 404);
same('while it is there', [worker.messages, stores.has(`followpress ${scope} seen`)], [[], true]);
network = text('', 404);
await worker.get('index.html', 'navigate');
same('once it is gone', [worker.messages, [...stores.keys()]], [['unregistered'], ['followpress https://site.example/other/_explore/ old files', 'of somebody else']]);
process.exit(0); // timers that nobody waits for
