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

  async function answer(url, endpoint, request) {
    request.signal.throwIfAborted();
    const aborted = new Promise((_, reject) => {
      request.signal.addEventListener('abort', () => reject(request.signal.reason), { once: true });
    });
    const { method } = request;
    const sent = method === 'GET' || method === 'HEAD' ? undefined : request.text();
    const a = await Promise.race([Promise.resolve(sent).then((body) => site.ask(method, endpoint, body)), aborted]);
    const empty = a.status === 204 || method === 'HEAD';
    const response = new Response(empty ? null : a.body, { status: a.status, headers: a.type ? { 'Content-Type': a.type } : {} });
    return Object.defineProperty(response, 'url', { value: url });
  }

  function shim(input, init) {
    const text = input instanceof Request ? input.url : String(input);
    // Relative URLs are those of the page, if there is one.
    const url = installed && URL.canParse(text, globalThis.location?.href) ? new URL(text, globalThis.location?.href) : null;
    const start = url && bases.find((base) => (url.origin + url.pathname).startsWith(base));
    if (!start) {
      return fetch(input, init);
    }
    return answer(url.href, (url.origin + url.pathname).slice(start.length) + url.search, new Request(input, init));
  }

  globalThis.fetch = shim;
  return function uninstall() {
    installed = false; // somebody may have kept the shim, or wrapped it
    if (globalThis.fetch === shim) {
      globalThis.fetch = fetch;
    }
  };
}
