// The explorer: navigation, and the view of the place where the reader is.

import { render } from 'preact';
import { useErrorBoundary, useState } from 'preact/hooks';
import { paint } from './brand';
import { renewal } from './data/site';
import { href, usePlace, viewOf, type Place } from './router';
import { texts } from './texts/first';
import { Frame } from './ui/frame';
import { Heading } from './ui/heading';
import { Later, type View } from './ui/later';
import { Failed } from './ui/load';
import { Search } from './ui/search';
import { Home } from './views/home';
import { part, start } from './worker';

const accounts = () => import('./views/accounts');
const account = async () => (await accounts()).Account;

// Views that load with what they need, by the first segment of their place.
const later: Record<string, () => Promise<View>> = {
  a: account,
  l: async () => (await accounts()).List,
  boards: async () => (await import('./views/boards')).Boards,
  proof: async () => (await import('./ui/after')).ProofView,
  network: async () => (await import('./views/network')).Network,
  reports: async () => (await import('./views/reports')).Reports,
  search: async () => (await import('./views/search')).SearchResults,
};

function Missing() {
  return (
    <div class="empty">
      <Heading title={texts.missing} />
      <a href={href([])}>{texts.home}</a>
    </div>
  );
}

function Current({ place }: { place: Place }) {
  const [first] = place.path;
  // A name or an address stands for its account.
  const load = first === undefined ? undefined : Object.hasOwn(later, first) ? later[first] : /[.]|^0x/i.test(first) && account;
  if (load) {
    return <Later load={load} given={{ place }} />;
  }
  return first === undefined ? <Home place={place} /> : <Missing />;
}

/** What is other than it should be in the data ends the view that shows it, and not the page. */
function Guarded({ place }: { place: Place }) {
  const [error, retry] = useErrorBoundary((caught: unknown) => console.error(caught));
  return error ? <Failed error={error as Error} retry={retry} /> : <Current place={place} />;
}

function App() {
  const place = usePlace();
  const [, draw] = useState(0);
  renewal.draw = () => draw(renewal.turn);
  return (
    <Frame place={place} search={place.path.length > 0 && <Search place={place} />}>
      <Guarded key={`${viewOf(place)} ${renewal.replaced}`} place={place} />
    </Frame>
  );
}

/** The page's own pictures too are made here: its policy allows no other. */
function addIcon(): void {
  const icon = document.createElement('link');
  icon.rel = 'icon';
  icon.href = URL.createObjectURL(new Blob([picture], { type: 'image/svg+xml' }));
  document.head.append(icon);
}

const picture =
  "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><path d='M4 12 12 4M4 4l8 8' stroke='#0b5cad'/><g fill='#0b5cad'><circle cx='4' cy='4' r='2.5'/><circle cx='12' cy='4' r='2.5'/><circle cx='4' cy='12' r='2.5'/><circle cx='12' cy='12' r='2.5'/></g></svg>";

paint();
const root = document.getElementById('app');
if (root) {
  root.replaceChildren(); // what is there until now
  render(<App />, root);
}
addIcon();
start();
// Where most readers go next.
addEventListener('load', () => void part(accounts).catch(() => undefined));
