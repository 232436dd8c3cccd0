// The element <follow-card name="alice.eth"> for any page: who it is, and how many follow. See docs/pages.md.
const site = new URL('.', import.meta.url);
const { api, title, colour, explorer } = SITE;
// Not a style element: the policy of the page may allow none.
const style = new CSSStyleSheet();
style.replaceSync(`:host{display:inline-block;max-width:100%;color-scheme:light dark;font:14px/1.4 system-ui,sans-serif}
:host([hidden]){display:none}
a{display:block;box-sizing:border-box;width:20em;max-width:100%;padding:.75em 1em;border:1px solid light-dark(#d5dde4,#2d3a47);border-radius:.5em;
background:light-dark(#fff,#10161c);color:light-dark(#17222e,#e1e8ee);text-decoration:none;overflow-wrap:anywhere}
a:hover,a:focus-visible{border-color:${colour}}
b{display:block;font-size:1.15em}
small{color:light-dark(#51606f,#a3b3c2)}`);
const n = (text) => new Intl.NumberFormat().format(text);
// What is not seen, but turns texts round or makes a name pass for another one.
const plain = (text) => String(text).replace(/[\p{Cc}\p{Cf}]+/gu, '\ufffd');

class FollowCard extends HTMLElement {
  static observedAttributes = ['name'];
  #root = this.attachShadow({ mode: 'open' });
  #asked;

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
    const asked = (this.#asked = {});
    const get = async (object) => {
      const answer = await fetch(new URL(`${api}/users/${encodeURIComponent(name)}/${object}`, site), { credentials: 'omit' });
      if (!answer.ok) {
        throw new Error(answer.status === 404 ? 'No such account' : 'Not available');
      }
      return answer.json();
    };
    let lines;
    let link = '';
    try {
      if (!name) {
        throw new Error('No name given');
      }
      const [account, stats] = await Promise.all([get('account'), get('stats')]);
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
    if (asked !== this.#asked) {
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
