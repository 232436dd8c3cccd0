// What the kit finds where it runs: a document, the service that it asks, and a chain. Import it
// before the kit and before React.
//
//   KIT_API   base URL of an API, http://127.0.0.1:1234/api/v1
//   KIT_SITE  or the URL of a site's objects, from which client/shim.js makes the answers
//   KIT_NOW   what time it is: the kit shows what has happened lately by its own clock
import { JSDOM } from 'jsdom';

if (process.env.KIT_NOW) {
  const late = Date.now() - Date.parse(process.env.KIT_NOW);
  globalThis.Date = class extends Date {
    constructor(...time) {
      super(...(time.length ? time : [Date.now()]));
    }
    static now() {
      return super.now() - late;
    }
  };
}

/** service is the base URL that the kit asks. */
export const service = 'https://data.ethfollow.xyz/api/v1';

/** requests are those that the kit has made to the service: method, path and body. */
export const requests = [];

/** complaints are what went wrong: errors written to the console, requests to other hosts. */
export const complaints = [];

/** direct is the fetch of Node. */
export const direct = globalThis.fetch;

let open = 0;
/** busy tells whether an answer is awaited. */
export const busy = () => open > 0;

// The storage location of any list, as its contract on the chain encodes it: version, type,
// chain id, contract, slot. The kit asks for that of the list of whoever is connected.
const hex = (number, bytes) => number.toString(16).padStart(2 * bytes, '0');
const location = hex(1, 1) + hex(1, 1) + hex(8453, 32) + hex(1, 20) + hex(1, 32);
const encoded = '0x' + hex(32, 32) + hex(location.length / 2, 32) + location.padEnd(192, '0');

async function outside(input, init) {
  const url = String(input.url ?? input);
  if (url === 'https://mainnet.base.org' || url === 'https://mainnet.base.org/') {
    const { id, method } = JSON.parse(init.body);
    const result = { eth_chainId: '0x2105', eth_call: encoded }[method];
    return Response.json({ jsonrpc: '2.0', id, result });
  }
  if (process.env.KIT_SITE && url.startsWith(process.env.KIT_SITE)) {
    return direct(input, init);
  }
  complaints.push(`a request to ${url}`);
  throw new TypeError(`nobody answers ${url}`);
}

let answer;
if (process.env.KIT_SITE) {
  globalThis.fetch = outside;
  const { install } = await import('../shim.js');
  install({ base: process.env.KIT_SITE });
  answer = globalThis.fetch;
} else {
  answer = (url, init) => (url.startsWith(service) ? direct(process.env.KIT_API + url.slice(service.length), init) : outside(url, init));
}

globalThis.fetch = async (url, init) => {
  if (url.startsWith(service)) {
    requests.push({ method: init?.method ?? 'GET', path: url.slice(service.length), ...(init?.body && { body: init.body }) });
  }
  open++;
  try {
    return await answer(url, init);
  } finally {
    open--;
  }
};

console.error = (...words) => complaints.push(words.map((word) => word?.stack ?? String(word)).join(' '));
console.warn = console.error;
console.log = () => {}; // the kit tells there what it fetches

const { window } = new JSDOM('<!doctype html><body></body>', { url: 'https://app.example/', pretendToBeVisual: true });
const names = ['window', 'document', 'navigator', 'localStorage', 'HTMLElement', 'HTMLIFrameElement', 'Element', 'Node', 'requestAnimationFrame', 'cancelAnimationFrame'];
for (const name of names) {
  Object.defineProperty(globalThis, name, { value: name === 'window' ? window : window[name], configurable: true, writable: true });
}
// Node's fetch and jsdom each have an AbortSignal and refuse the other's. Signals are Node's.
const { addEventListener } = window.EventTarget.prototype;
window.EventTarget.prototype.addEventListener = function (type, listener, options) {
  const { signal, ...others } = Object(options);
  addEventListener.call(this, type, listener, signal ? others : options);
  signal?.addEventListener('abort', () => this.removeEventListener(type, listener, options?.capture));
};
// Nothing is ever scrolled to.
globalThis.IntersectionObserver = window.IntersectionObserver = class {
  observe() {}
  unobserve() {}
  disconnect() {}
};
globalThis.IS_REACT_ACT_ENVIRONMENT = true;
