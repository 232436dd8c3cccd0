// What is around every view: the way to the others, the search box, settings, and where the data are from.

import type { Children } from '../elements';
import { useEffect, useState } from 'preact/hooks';
import { hasReports, home, logo } from '../brand';
import { base, renew, renewal, site } from '../data/site';
import { anyPictures, readerDecides, useAsked } from '../pictures/policy';
import { href, type Href, type Place } from '../router';
import { choose, useSettings } from '../settings';
import { gap, type Text } from '../text';
import { date, moment, number, texts } from '../texts/first';
import { part, useOffline } from '../worker';
import { Icon } from './icon';
import { outside } from './links';
import { useLoad } from './load';
import { Tabs } from './tabs';

// The page that shows the API, if the explorer is part of a preview.
const start = document.querySelector<HTMLMetaElement>('meta[name="followpress-start"]')?.content as Href | undefined;

// Views of the navigation, by the first segment of their places.
const entries: [segments: string[], name: Text][] = [
  [[], texts.home],
  [['boards', 'followers'], texts.boards],
  [['network'], texts.network],
  ...(hasReports ? [[['reports'], texts.reports] as [string[], Text]] : []),
];

function Navigation({ place }: { place: Place }) {
  return (
    <Tabs label={texts.navigation}>
      {entries.map(([segments, name]) => (
        <a key={name} href={href(segments)} aria-current={segments[0] === place.path[0] ? 'page' : undefined}>
          {name}
        </a>
      ))}
      {start && <a href={start}>{texts.api}</a>}
    </Tabs>
  );
}

function Settings({ me, children }: { me: Children; children: Children }) {
  return (
    <div class="tools">
      <Sign />
      {me}
      <button type="button" class="plain icon" popovertarget="settings" aria-label={texts.settings} title={texts.settings}>
        <Icon name="settings" />
      </button>
      <div id="settings" class="panel" popover="auto" role="dialog" aria-label={texts.settings}>
        {children}
      </div>
    </div>
  );
}

/** Asks, once there is a picture for which that is needed. */
function Question() {
  const asked = useAsked();
  const { pictures, others } = useSettings();
  if (!asked || !pictures || others !== undefined) {
    return null;
  }
  return (
    <div class="notice question">
      <p class="line">{texts.mayOthers}</p>
      <button type="button" onClick={() => choose({ others: true })}>
        {texts.load}
      </button>
      <button type="button" onClick={() => choose({ others: false })}>
        {texts.leave}
      </button>
    </div>
  );
}

const project = 'https://github.com/followpress/followpress' as Href;

/** How new the page is, where the site is live: then it renews itself. */
function Sign() {
  const [[asOf, isLive], set] = useState<[asOf: string, isLive?: boolean]>(['']);
  const [said, say] = useState('');
  useEffect(() => {
    void site.root().then(async ({ live }) => {
      if (live) {
        const { follow } = await part(() => import('../data/live'));
        follow({ base, renew, renewal }, () => site.root(), (...now) => set(now), say);
      }
    }).catch(() => undefined); // the foot of the page says so
  }, []);
  return (
    <>
      <span class="quiet small num">{asOf && (isLive ? texts.live : texts.notLive)(moment(asOf))}</span>
      <span class="hidden" role="status">
        {said && texts.renewed(moment(said))}
      </span>
    </>
  );
}

function Foot({ children }: { children: Children }) {
  const root = useLoad(() => site.root(), []);
  const { accounts = 0, lists = 0, follows = 0 } = root.state === 'done' ? root.value.counts : {};
  return (
    <footer class="foot">
      <div>
        <p>
          {texts.about}
          {gap}
          <a href={project} {...outside}>
            {texts.more}
          </a>
        </p>
        <p>{root.state === 'done' ? texts.foot(date(root.value.as_of), texts.sizes(number(accounts), number(lists), number(follows))) : texts.blank}</p>
        <p>{children || texts.blank}</p>
      </div>
    </footer>
  );
}

export function Frame({ place, search, children }: { place: Place; search: Children; children: Children }) {
  const offline = useOffline();
  const loaded = useLoad(() => part(() => import('./after')), [], false);
  const after = loaded.state === 'done' && loaded.value;
  // A link to a part of the page would be a place.
  const skip = (event: Event) => {
    event.preventDefault();
    document.querySelector('main')?.focus();
  };
  return (
    <>
      <a class="skip button" href={'#main' as Href} onClick={skip}>
        {texts.skip}
      </a>
      <header class="bar">
        <div>
          <a class="brand" href={home ?? href([])}>
            {logo ? <img src={logo} alt="" width={24} height={24} /> : <Icon name="brand" size={24} />}
            {texts.title}
          </a>
          <Navigation place={place} />
          {search}
          <Settings me={after && <after.Me />}>{after && <after.Choices anyPictures={anyPictures} readerDecides={readerDecides} />}</Settings>
        </div>
      </header>
      <div role="status">
        {offline && <p class="notice">{texts.offline}</p>}
        {after && <after.Newer place={place} />}
      </div>
      <main id="main" tabIndex={-1}>
        {children}
      </main>
      <Foot>{after && <after.Seal />}</Foot>
      <div role="status">
        <Question />
      </div>
    </>
  );
}
