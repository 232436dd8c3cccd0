// The service worker: what was seen can be seen offline. The explorer's own files are kept as a
// whole, objects of the site as they come. Pictures of profiles are of other hosts, and left to the browser.

declare const self: ServiceWorkerGlobalScope;
/** The page, then all files that have a hash of their content in their names. */
declare const FILES: string[];

const scope = self.registration.scope; // the folder of the explorer
const base = new URL('..', scope).href; // that of the site
const page = new URL(FILES[0] ?? '', scope).href;

// Other sites may have explorers at the same origin.
const prefix = `followpress ${scope} `;
const appName = prefix + FILES.slice(1).join(' ');
const seenName = prefix + 'seen';

const patience = 4000; // milliseconds until what was seen is shown instead
const mostObjects = 1_000; // a neighbourhood has some 600
const mostBytes = 50 << 20;
// Every view needs these, so that they stay while others go.
const always = ['../_site', '../_site.note', 'start', 'top', 'network'].map((name) => new URL(name, scope).href);

const lengthHeader = 'followpress-length';
const asIs = { ignoreVary: true };

// Buckets say 403 or 404 for what is not there.
const isAbsent = ({ status }: Response): boolean => status === 404 || status === 403;

/* Files of the explorer. Some hosts answer with a page for whatever they do not have. */

const isFile = ({ ok, redirected, headers }: Response): boolean =>
  ok && !redirected && /\/(javascript|css)\b/.test(headers.get('content-type') ?? '');

/** Whether a page is of this version: all files that it names are. */
async function isOwnPage(response: Response): Promise<boolean> {
  const named = response.ok ? (await response.text()).match(/\b[a-z]+-[A-Z0-9]{8}\.(js|css)\b/g) : null;
  return !!named && named.every((name) => FILES.includes(name));
}

/* What was seen */

// The objects that are kept with their lengths, the oldest first; read when it is first needed.
let lengths: Promise<Map<string, number>> | undefined;

async function readLengths(): Promise<Map<string, number>> {
  const seen = await caches.open(seenName);
  const all = new Map<string, number>();
  for (const request of await seen.keys()) {
    const response = await seen.match(request, asIs);
    all.set(request.url, Number(response?.headers.get(lengthHeader)));
  }
  return all;
}

// Whether the explorer is no longer part of the site. What arrives late is not kept then.
let ended = false;

/** Keeps an answer, and drops what is too much. */
async function keep(url: string, response: Response): Promise<void> {
  const body = await response.blob();
  if (ended || body.size > mostBytes / 4) {
    return;
  }
  const seen = await caches.open(seenName);
  lengths ??= readLengths();
  lengths.catch(() => (lengths = undefined)); // then they are read again
  const all = await lengths;
  const headers = { 'content-type': response.headers.get('content-type') ?? '', [lengthHeader]: String(body.size) };
  all.delete(url);
  all.set(url, body.size);
  await seen.put(url, new Response(body, { status: response.status, headers }));
  let bytes = [...all.values()].reduce((sum, length) => sum + length, 0);
  for (const [old, length] of all) {
    if (all.size <= mostObjects && bytes <= mostBytes) {
      return;
    }
    if (!always.includes(old)) {
      all.delete(old);
      bytes -= length;
      await seen.delete(old, asIs);
    }
  }
}

// Whether an answer says something about the site. Some hosts send the browser from index.html to its folder.
const isAnswer = (response: Response): boolean =>
  response.type === 'opaqueredirect' || (response.type !== 'opaque' && (response.status === 200 || isAbsent(response)));

/* Pages that were told that they see what was seen before */
const told = new Set<string>();

async function tell(id: string, offline: boolean): Promise<void> {
  const client = offline === told.has(id) ? undefined : await self.clients.get(id);
  if (client) {
    told[offline ? 'add' : 'delete'](id);
    client.postMessage({ offline });
  }
}

/* Answers */

/** The answer of the network, unless it is none, or late and another one is known. */
async function fromNetwork(event: FetchEvent, known: () => Promise<Response | undefined>, put: (response: Response) => Promise<void>) {
  const network = fetch(event.request).then((response) => {
    if (isAnswer(response)) {
      event.waitUntil(put(response.clone()).catch(() => undefined)); // no room: then it is not kept
    }
    return response;
  });
  event.waitUntil(network.catch(() => undefined)); // a late answer is kept too
  const late = new Promise<undefined>((done) => setTimeout(done, patience));
  const first = await Promise.race([network.catch(() => undefined), late]);
  if (first && isAnswer(first)) {
    event.waitUntil(tell(event.clientId, false));
    return first;
  }
  const before = await known();
  if (before) {
    event.waitUntil(tell(event.clientId, true));
    return before;
  }
  return network;
}

const object = (event: FetchEvent): Promise<Response> => {
  const { url } = event.request;
  const known = async () => (await caches.open(seenName)).match(url, asIs);
  return fromNetwork(event, known, (response) => keep(url, response));
};

// The answer to another request than it was for, after a redirect, would not be accepted for the page.
async function keepPage(response: Response): Promise<void> {
  await (await caches.open(appName)).put(page, new Response(await response.blob(), { headers: { 'content-type': 'text/html' } }));
}

/** Ends the worker, and forgets all that it has kept, if the explorer is no longer part of the site. */
async function endIfGone(): Promise<void> {
  if (isAbsent(await fetch(new URL('sw.js', scope), { cache: 'no-store' }))) {
    ended = true;
    const names = (await caches.keys()).filter((name) => name.startsWith(prefix));
    await Promise.all(names.map((name) => caches.delete(name)));
    await self.registration.unregister();
  }
}

const pageFirst = (event: FetchEvent): Promise<Response> => {
  return fromNetwork(
    event,
    async () => (await caches.open(appName)).match(page, asIs),
    async (response) => {
      if (isAbsent(response)) {
        await endIfGone();
      } else if (await isOwnPage(response.clone())) {
        // That of another version comes with its files, when its worker is installed.
        await keepPage(response);
      }
    },
  );
};

/**
 * A file whose name says what is in it. Those of this version are there since it was installed. Those of another one are
 * not kept: a page that is still open would bring the old version, which the browser may have too, back.
 */
const appFile = async ({ request }: FetchEvent): Promise<Response> => (await caches.match(request.url, asIs)) ?? fetch(request);

const isAppFile = (url: string): boolean => url.startsWith(scope) && /^[a-z]+-[A-Z0-9]{8}\.(js|css)$/.test(url.slice(scope.length));

self.addEventListener('fetch', (event) => {
  const { method, url, mode, headers } = event.request;
  // A stream has no end, and what is asked for after a block is not answered with what was seen before.
  if (method !== 'GET' || !url.startsWith(base) || url.startsWith(base + '_live/') || headers.has('X-After')) {
    return;
  }
  if (mode === 'navigate') {
    if (url.replace(/[?#].*/, '') === page || url === scope) {
      event.respondWith(pageFirst(event));
    } else if (url.startsWith(page + '%23')) {
      // A copied address whose hash sign some program has encoded.
      event.respondWith(Promise.resolve(Response.redirect(url.replace('%23', '#'))));
    }
  } else if (isAppFile(url)) {
    event.respondWith(appFile(event));
  } else {
    event.respondWith(object(event));
  }
});

/* Its life */

self.addEventListener('install', (event) => {
  const prepare = async () => {
    const app = await caches.open(appName);
    const take = async (name: string) => {
      const isPage = name === FILES[0];
      const request = new Request(new URL(name, scope), { cache: isPage ? 'no-cache' : 'default' });
      const response = await fetch(request);
      if (!(isPage ? await isOwnPage(response.clone()) : isFile(response))) {
        throw new TypeError(`${request.url}: not a file of this version`);
      }
      await (isPage ? keepPage(response) : app.put(request, response));
    };
    await Promise.all(FILES.map(take));
    await self.skipWaiting(); // pages that are open load themselves again if they miss a part of theirs
  };
  event.waitUntil(prepare());
});

self.addEventListener('activate', (event) => {
  const clean = async () => {
    const names = await caches.keys();
    await Promise.all(names.filter((name) => name.startsWith(prefix) && name !== appName && name !== seenName).map((name) => caches.delete(name)));
    await self.clients.claim();
  };
  event.waitUntil(clean());
});

// A page that was there before the first worker says what it has read. Others remind a worker that waits.
self.addEventListener('message', (event) => {
  const { seen, takeOver } = event.data as { seen?: unknown; takeOver?: unknown };
  if (takeOver) {
    event.waitUntil(self.skipWaiting());
  }
  const urls = Array.isArray(seen) ? seen.filter((url): url is string => typeof url === 'string') : [];
  const read = async (url: string) => {
    const response = await fetch(url, { cache: 'force-cache' });
    if (isAnswer(response)) {
      await keep(url, response);
    }
  };
  for (const url of urls.slice(-mostObjects)) {
    if (url.startsWith(base) && !isAppFile(url) && !url.startsWith(page)) {
      event.waitUntil(read(url).catch(() => undefined));
    }
  }
});

export {};
