// The explorer: navigation, and the view of the place where the reader is.

import { render } from 'preact';
import type { ComponentType } from 'preact';
import { href, usePlace, type Place } from './router';
import { texts } from './texts';
import { Show, useLoad } from './ui/load';
import { Home } from './views/home';

type View = ComponentType<{ place: Place }>;

// Views that load with what they need, by the first segment of their place.
const later: Record<string, () => Promise<View>> = {};

function Later({ load, place }: { load: () => Promise<View>; place: Place }) {
  const loaded = useLoad(load, [load]);
  return <Show loaded={loaded}>{(View) => <View place={place} />}</Show>;
}

function Current({ place }: { place: Place }) {
  const [first] = place.path;
  const load = first === undefined ? undefined : later[first];
  if (load) {
    return <Later load={load} place={place} />;
  }
  return first === undefined ? <Home /> : <p>{texts.missing}</p>;
}

function App() {
  const place = usePlace();
  return (
    <>
      <header>
        <nav>
          <a href={href([])}>{texts.title}</a>
        </nav>
      </header>
      <main>
        <Current place={place} />
      </main>
    </>
  );
}

const root = document.getElementById('app');
if (root) {
  render(<App />, root);
}
if ('serviceWorker' in navigator && isSecureContext) {
  navigator.serviceWorker.register('sw.js').catch((error: unknown) => console.warn(error));
}
