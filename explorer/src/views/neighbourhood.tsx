// A picture of an account, those it follows, and who of them follows whom.

import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { followed, neighbourhood, type Neighbourhood as Found } from '../data/neighbours';
import type { Person } from '../data/site';
import { colourCount, Graph } from '../graph/model';
import type { Places } from '../graph/layout';
import type { Colours } from '../graph/paint';
import { loadPictures } from '../graph/pictures';
import { Stage } from '../graph/stage';
import { graphTexts } from '../texts/later';
import { go, href, type Place } from '../router';
import { useSettings } from '../settings';
import { gap } from '../text';
import { number, roughly, sentences } from '../texts/first';
import { colours, useTheme } from '../ui/colours';
import { Show, useLoad } from '../ui/load';
import { Avatar, Name } from '../ui/person';

// Where accounts were in the last picture, for the next one.
let last: Places = new Map();

const communities = Array.from({ length: colourCount }, (_, i) => `group-${i}`);

function palette(): Colours {
  const { quiet, ...others } = colours('ground', 'text', 'quiet', 'accent', 'second');
  return { ...others, edge: quiet, nodes: [...Object.values(colours(...communities)), quiet] };
}

const isCalm = (): boolean => matchMedia('(prefers-reduced-motion: reduce)').matches;

export function Neighbourhood({ place }: { place: Place }) {
  const user = place.path[1] ?? '';
  const loaded = useLoad(() => neighbourhood(user), [user], false);
  return (
    <Show loaded={loaded}>
      {(found) =>
        found && found.people.length > 1 ? (
          <Picture key={found.people[0]?.address} found={found} />
        ) : (
          <p class="empty">{graphTexts.nobody}</p>
        )
      }
    </Show>
  );
}

const walk = (person: Person | undefined) => person && go(href(['a', person.address, 'graph']));

/** How many follows there are in a graph. */
const follows = (graph: Graph): number => graph.edges.reduce((sum, { who }) => sum + (who === 3 ? 2 : 1), 0);

type Progress = 'reading' | 'done' | 'partly';

function Picture({ found: { people, left } }: { found: Found }) {
  const graph = useMemo(() => new Graph(people), [people]);
  const canvas = useRef<HTMLCanvasElement>(null);
  const stage = useRef<Stage | undefined>(undefined);
  const [progress, setProgress] = useState<Progress>('reading');
  const [selected, setSelected] = useState<number>();
  const [hint, setHint] = useState<'wheel' | 'finger'>();
  const settings = useSettings();
  const { pictures, others } = settings;
  const theme = useTheme();

  useEffect(() => {
    if (!canvas.current) {
      return;
    }
    const before: Places = last.has(people[0]?.address ?? '') ? last : new Map();
    const current = new Stage(canvas.current, graph, palette(), before, isCalm, {
      select: setSelected,
      walk: (index) => walk(people[index]),
      scrolled: setHint,
      shown: () => performance.mark('followpress:graph'),
    });
    stage.current = current;
    const ended = new AbortController();
    const each = (index: number, targets: number[]) => {
      graph.follow(index, targets);
      current.changed();
    };
    void followed(people, each, ended.signal).then((failed) => {
      if (!ended.signal.aborted) {
        graph.finish();
        current.arrange();
        setProgress(failed ? 'partly' : 'done');
      }
    });
    return () => {
      ended.abort();
      last = current.places();
      current.end();
    };
  }, [graph]);
  useEffect(() => {
    const timer = setTimeout(() => setHint(undefined), 4000);
    return () => clearTimeout(timer);
  }, [hint]);
  useEffect(() => stage.current?.paintWith(palette()), [theme]);
  useEffect(() => stage.current?.select(selected), [selected]);
  useEffect(() => {
    const ended = new AbortController();
    const loaded = new Map<number, CanvasImageSource>();
    const each = (index: number, image: CanvasImageSource) => stage.current?.showPictures(loaded.set(index, image));
    stage.current?.showPictures(loaded);
    void loadPictures(people, settings, each, ended.signal);
    return () => ended.abort();
  }, [graph, pictures, others]);

  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Record<string, [number, number]> = { ArrowUp: [0, -1], ArrowDown: [0, 1], ArrowLeft: [-1, 0], ArrowRight: [1, 0] };
    const factors: Record<string, number> = { '+': 1.4, '=': 1.4, '-': 1 / 1.4 };
    const step = steps[event.key];
    const factor = factors[event.key];
    if (event.altKey || event.ctrlKey || event.metaKey) {
      return;
    } else if (step) {
      setSelected(selected === undefined ? 0 : stage.current?.nearest(...step));
    } else if (factor) {
      stage.current?.zoomBy(factor);
    } else if (event.key === '0') {
      stage.current?.fitAll();
    } else if (event.key === 'Escape') {
      setSelected(undefined);
    } else if (event.key === 'Enter') {
      if (selected === undefined) {
        setSelected(0);
      } else {
        document.getElementById('chosen')?.querySelector('a')?.focus();
      }
    } else {
      return;
    }
    event.preventDefault();
  };

  const size = graphTexts.size(number(people.length - 1), left ? number(left) : undefined);
  const state = { reading: graphTexts.reading, done: graphTexts.follows(number(follows(graph))), partly: graphTexts.partly(number(follows(graph))) }[progress];
  return (
    <div class="neighbourhood">
      <div class="stage">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="application"
          aria-roledescription={graphTexts.role}
          aria-label={sentences(graphTexts.label(number(people.length)), graphTexts.keys)}
          onKeyDown={onKeyDown}
        />
        <p class="hint notice small" hidden={!hint} role="status">
          {hint && graphTexts.scrolls[hint]}
        </p>
        <div class="zoom">
          <button type="button" class="icon" aria-label={graphTexts.larger} title={graphTexts.larger} onClick={() => stage.current?.zoomBy(1.4)}>
            {graphTexts.plus}
          </button>
          <button type="button" class="icon" aria-label={graphTexts.smaller} title={graphTexts.smaller} onClick={() => stage.current?.zoomBy(1 / 1.4)}>
            {graphTexts.minus}
          </button>
          <button type="button" class="icon" aria-label={graphTexts.fit} title={graphTexts.fit} onClick={() => stage.current?.fitAll()}>
            <svg viewBox="0 0 24 24" width="18" height="18" fill="none" stroke="currentColor" stroke-width="2" aria-hidden="true">
              <path d="M4 9V4h5M20 9V4h-5M4 15v5h5M20 15v5h-5" />
            </svg>
          </button>
        </div>
      </div>
      <div class="below">
        <p class="quiet small" role="status">
          {sentences(size, state)}
        </p>
        {progress !== 'reading' && <Legend graph={graph} selected={selected} select={setSelected} />}
      </div>
      <div id="chosen" class="chosen" aria-live="polite">
        <Chosen graph={graph} person={selected === undefined ? undefined : people[selected]} index={selected} />
      </div>
      <List people={people} selected={selected} select={setSelected} />
    </div>
  );
}

function Chosen({ graph, person, index }: { graph: Graph; person: Person | undefined; index: number | undefined }) {
  if (!person || index === undefined) {
    return <p class="quiet small">{graphTexts.help}</p>;
  }
  const edges = graph.of(index);
  const count = (own: number, others: number) => edges.filter(({ a, who }) => who & (a === index ? own : others)).length;
  return (
    <div class="card stack">
      <p class="account">
        <Avatar person={person} />
        <strong class="line">
          <Name person={person} />
        </strong>
      </p>
      <ul class="small">
        {person.followers ? <li>{graphTexts.followers((index ? roughly : number)(person.followers))}</li> : null}
        <li>
          <span class="key" style={{ background: 'var(--accent)' }} />{gap}
          {graphTexts.followsHere(number(count(1, 2)))}
        </li>
        <li>
          <span class="key" style={{ background: 'var(--second)' }} />{gap}
          {graphTexts.followedHere(number(count(2, 1)))}
        </li>
      </ul>
      <p class="row">
        <a class="button" href={href(['a', person.address])}>
          {graphTexts.profile}
        </a>
        {index > 0 && (
          <a class="button primary" href={href(['a', person.address, 'graph'])}>
            {graphTexts.walk}
          </a>
        )}
      </p>
    </div>
  );
}

/** What the colours mean: accounts that have many in common, named after the best known of them. */
function Legend({ graph, selected, select }: { graph: Graph; selected: number | undefined; select: (index: number) => void }) {
  const groups = graph.communities();
  return groups.length === 0 ? null : (
    <section class="legend small" aria-label={graphTexts.colours}>
      <h2 class="small">{graphTexts.colours}</h2>
      <ul class="row">
        {groups.map(({ colour, size, most }) => (
          <li key={colour}>
            <button type="button" class="chip" aria-pressed={most.index === selected} onClick={() => select(most.index)}>
              <span class="dot" style={{ background: `var(--group-${colour})` }} />
              <Name person={most.person} />
              <span>{graphTexts.andOthers(number(size - 1))}</span>
            </button>
          </li>
        ))}
        {graph.nodes.some(({ community }) => community < 0) && (
          <li class="chip">
            <span class="dot" style={{ background: 'var(--quiet)' }} />
            {graphTexts.alone}
          </li>
        )}
      </ul>
    </section>
  );
}

function List({ people, selected, select }: { people: readonly Person[]; selected: number | undefined; select: (index: number) => void }) {
  const wide = useMemo(() => matchMedia('(min-width: 52rem)').matches, []);
  return (
    <details class="everyone" open={wide}>
      <summary>{graphTexts.list}</summary>
      <ol tabIndex={-1}>
        {people.map((person, index) => (
          <li key={person.address}>
            <button type="button" class="plain" aria-pressed={index === selected} onClick={() => select(index)}>
              <Name person={person} />
              <span class="num quiet">{person.followers ? (index ? roughly : number)(person.followers) : null}</span>
            </button>
          </li>
        ))}
      </ol>
    </details>
  );
}
