// A fetch for programs that ask the service of the Ethereum Follow Protocol: what they ask
// of it is answered from the objects of a site, without a server. See docs/client.md.

import { openSite } from './followpress.js';

/** service lists the base URLs that the service's clients ask by default. */
export const service = ['https://data.ethfollow.xyz/api/v1', 'https://api.ethfollow.xyz/api/v1'];

/**
 * install replaces the global fetch. Requests below a URL of from, the service's by default,
 * are answered from the site at base; all others go where they went. The result undoes it.
 */
export function install({ base, from = service, ...options }) {
  const fetch = globalThis.fetch;
  const site = openSite(base, { fetch: (...request) => fetch(...request), ...options });
  const bases = [from].flat().map((url) => new URL(url).href.replace(/\/*$/, '/'));
  let installed = true;

  async function answer(url, endpoint, asked, init) {
    const method = (init.method ?? asked.method ?? 'GET').toUpperCase();
    const signal = init.signal ?? asked.signal;
    const aborted = new Promise((_, reject) => {
      const abort = () => reject(signal.reason);
      if (signal?.aborted) {
        abort();
      }
      signal?.addEventListener('abort', abort, { once: true });
    });
    aborted.catch(() => {}); // the race below reports it
    const sent = init.body ? new Response(init.body) : asked.clone?.();
    const body = sent && new Uint8Array(await sent.arrayBuffer()); // a text would hide what is not UTF-8
    const a = await Promise.race([aborted, site.ask(method, endpoint, body)]);
    if (a.location) {
      return fetch(a.location, init); // as a browser follows it
    }
    const empty = a.status === 204 || method === 'HEAD';
    const response = new Response(empty ? null : a.body, { status: a.status, headers: a.type ? { 'Content-Type': a.type } : {} });
    return Object.defineProperty(response, 'url', { value: url });
  }

  // absolute resolves a URL of the page, null if there is no page or it is none.
  function absolute(text) {
    try {
      return new URL(text, globalThis.location?.href);
    } catch {
      return null;
    }
  }

  function shim(input, init) {
    const url = installed ? absolute(input?.url ?? input) : null;
    const start = url && bases.find((base) => (url.origin + url.pathname).startsWith(base));
    if (!start) {
      return fetch(input, init);
    }
    return answer(url.href, (url.origin + url.pathname).slice(start.length) + url.search, Object(input), init ?? {});
  }

  globalThis.fetch = shim;
  return function uninstall() {
    installed = false; // somebody may have kept the shim, or wrapped it
    if (globalThis.fetch === shim) {
      globalThis.fetch = fetch;
    }
  };
}
