// <follow-card name="alice.eth"> shows an account and its follower counts on any page. See docs/pages.md.
const site = new URL('.', import.meta.url);
const { api, title, colour, explorer } = SITE;
// Constructed, because the policy of a page may block style elements.
const style = new CSSStyleSheet();
// An !important rule of :host overrides the rules of the page, such as * {}.
style.replaceSync(`:host{all:initial!important;display:inline-block!important;max-width:100%!important;direction:ltr!important;
color-scheme:light dark!important;font:14px/1.4 system-ui,sans-serif!important}
:host([hidden]){display:none!important}
:host::before,:host::after{content:none!important}
a{display:block;box-sizing:border-box;width:20em;max-width:100%;padding:.75em 1em;border:1px solid light-dark(#d5dde4,#2d3a47);border-radius:.5em;
background:light-dark(#fff,#10161c);color:light-dark(#17222e,#e1e8ee);text-decoration:none;overflow-wrap:anywhere}
a:hover,a:focus-visible{border-color:${colour}}
b{display:block;font-size:1.15em}
small{color:light-dark(#51606f,#a3b3c2)}`);
const n = (text) => new Intl.NumberFormat().format(text);
// Replaces invisible characters, which reverse text or imitate other names.
const plain = (text) => String(text).replace(/[\p{Cc}\p{Cf}]+/gu, '\ufffd');

// Responses by URL: cards of one account share them. Failed requests are retried.
const answers = new Map();
function get(url) {
  if (!answers.has(url)) {
    const answer = fetch(url, { credentials: 'omit' }).then((got) => {
      if (!got.ok) {
        throw new Error(got.status === 404 ? 'Account not found' : 'Unavailable');
      }
      return got.json();
    });
    answer.catch(() => answers.delete(url));
    answers.set(url, answer);
  }
  return answers.get(url);
}

class FollowCard extends HTMLElement {
  static observedAttributes = ['name'];
  #root = this.attachShadow({ mode: 'open' });
  #name; // shown or requested

  constructor() {
    super();
    this.#root.adoptedStyleSheets = [style];
  }

  connectedCallback() {
    this.#show();
  }

  attributeChangedCallback() {
    if (this.isConnected) {
      this.#show();
    }
  }

  async #show() {
    const name = (this.getAttribute('name') || '').trim().toLowerCase(); // keys are lower case
    if (name === this.#name) {
      return; // connectedCallback and attributeChangedCallback both fire
    }
    this.#name = name;
    const about = (object) => get(new URL(`${api}/users/${encodeURIComponent(name)}/${object}`, site).href);
    let lines;
    let link = '';
    try {
      if (!name) {
        throw new Error('No name set');
      }
      const [account, stats] = await Promise.all([about('account'), about('stats')]);
      // Every named account has a page.
      if (!/^0x[0-9a-f]{40}$/.test(name)) {
        link = `u/${/^PAGE$/.test(name) ? name : account.address}/index.html`;
      } else if (explorer) {
        link = `_explore/index.html#/a/${account.address}`;
      }
      lines = [plain(account.ens?.name || account.address), `${n(stats.followers_count)} ${Number(stats.followers_count) === 1 ? 'follower' : 'followers'} · ${n(stats.following_count)} following`];
    } catch (error) {
      lines = [plain(name), /^(No|Acc)/.test(error.message) ? error.message : 'Unavailable'];
    }
    if (name !== this.#name) {
      return; // the name changed while it loaded
    }
    const make = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
    const card = make('a', '');
    if (link) {
      card.href = new URL(link, site);
    }
    card.append(make('b', lines[0]), make('span', lines[1]), document.createElement('br'), make('small', title));
    this.#root.replaceChildren(card);
  }
}

if (!customElements.get('follow-card')) {
  customElements.define('follow-card', FollowCard);
}
