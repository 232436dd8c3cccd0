// The element <follow-card name="alice.eth"> for any page: who it is, and how many follow. See docs/pages.md.
const site = new URL('.', import.meta.url);
const { api, title, colour, explorer } = SITE;
// Not a style element: the policy of the page may allow none.
const style = new CSSStyleSheet();
// What is important within a shadow root wins over the rules of the page, such as those of *.
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
// What is not seen, but turns texts round or makes a name pass for another one.
const plain = (text) => String(text).replace(/[\p{Cc}\p{Cf}]+/gu, '\ufffd');

// Answers by URL, so that several cards of one account ask once. What failed is asked for again.
const answers = new Map();
function get(url) {
  if (!answers.has(url)) {
    const answer = fetch(url, { credentials: 'omit' }).then((got) => {
      if (!got.ok) {
        throw new Error(got.status === 404 ? 'No such account' : 'Not available');
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
  #name; // shown or asked for

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
    const name = (this.getAttribute('name') || '').trim().toLowerCase(); // as keys are
    if (name === this.#name) {
      return; // the browser tells of an element and of its attribute
    }
    this.#name = name;
    const about = (object) => get(new URL(`${api}/users/${encodeURIComponent(name)}/${object}`, site).href);
    let lines;
    let link = '';
    try {
      if (!name) {
        throw new Error('No name given');
      }
      const [account, stats] = await Promise.all([about('account'), about('stats')]);
      // Each account with a name has a page, and some others do.
      if (!/^0x[0-9a-f]{40}$/.test(name)) {
        link = `u/${/^PAGE$/.test(name) ? name : account.address}/index.html`;
      } else if (explorer) {
        link = `_explore/index.html#/a/${account.address}`;
      }
      lines = [plain(account.ens?.name || account.address), `${n(stats.followers_count)} ${Number(stats.followers_count) === 1 ? 'follower' : 'followers'} · ${n(stats.following_count)} following`];
    } catch (error) {
      lines = [plain(name), /^N/.test(error.message) ? error.message : 'Not available'];
    }
    if (name !== this.#name) {
      return; // another name was given meanwhile
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
