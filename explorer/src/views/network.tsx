// The network as a whole: sizes, distributions, tags, growth.

import { useMemo, useState } from 'preact/hooks';
import uPlot from 'uplot';
import { median, placeOf, ranges, sums, tens, type Counted } from '../data/degrees';
import { growth } from '../data/history';
import { askedForTag, taggedMost } from '../data/people';
import { base, hasData, isWhole, network, type Board, type Network as Sizes } from '../data/site';
import { networkTexts } from '../texts/later';
import { tagQuery } from '../place';
import { go, href, type Href, type Place } from '../router';
import { clip, named, type Text } from '../text';
import { month, number, range, sentences } from '../texts/first';
import { axis, Chart, type Palette } from '../ui/chart';
import { Heading } from '../ui/heading';
import { objectLink } from '../ui/links';
import { Show, useLoad } from '../ui/load';
import { PersonLink } from '../ui/person';
import { Growth } from './growth';

export function Network({ place }: { place: Place }) {
  const loaded = useLoad(async () => ({ sizes: await network(), whole: await isWhole(), files: await hasData() }), [], false);
  return (
    <div class="stack network">
      <Heading title={networkTexts.title} />
      <Show loaded={loaded}>
        {({ sizes, whole, files }) => (
          <>
            <Figures sizes={sizes} />
            <div class="columns charts">
              {(['followers', 'following'] as const).map((kind) => sizes[kind].length > 0 && <Degrees key={kind} kind={kind} degrees={sizes[kind]} whole={whole} />)}
              <OverTime growth={sizes.growth} />
              {sizes.tags.length > 0 && <Tags tags={sizes.tags} whole={whole} chosen={place.query.get('tag')} />}
            </div>
            {files && (
              <p>
                <a href={objectLink(base, '_data/datapackage.json')}>{networkTexts.files}</a>
              </p>
            )}
          </>
        )}
      </Show>
    </div>
  );
}

const figures = Object.keys(networkTexts.figures) as (keyof typeof networkTexts.figures)[];

function Figures({ sizes }: { sizes: Sizes }) {
  return (
    <dl class="figures">
      {figures.map((name) => (
        <div key={name}>
          <dt>{networkTexts.figures[name]}</dt>
          <dd>{number(sizes[name])}</dd>
        </div>
      ))}
    </dl>
  );
}

/** Powers of ten around values, so that a scale has at least one decade. */
const decades: uPlot.Scale.Range = (_plot, least, most) => [
  10 ** Math.floor(Math.log10(Math.max(1, least))),
  10 ** Math.max(1, Math.ceil(Math.log10(Math.max(1, most)) + 0.02)),
];

/** Numbers and lines are at powers of ten only. */
const powers = (_plot: uPlot, splits: number[]): (number | null)[] =>
  splits.map((value) => (value >= 1 && Number.isInteger(Math.log10(value)) ? value : null));

const decadeAxis = (palette: Palette): uPlot.Axis => {
  const usual = axis(palette);
  return {
    ...usual,
    grid: { ...usual.grid, filter: powers },
    ticks: { ...usual.ticks, filter: powers },
    filter: powers,
    values: (_plot, splits) => splits.map((value: number | null) => (value === null ? null : number(value))),
  };
};

/** A chart that leads to what is at the point that is pressed. */
const logarithmic = (palette: Palette, unit: Text, lead: ((index: number) => void) | undefined): Omit<uPlot.Options, 'width' | 'height'> => ({
  hooks: {
    ready: [
      ({ over, cursor }) => {
        over.style.cursor = lead ? 'pointer' : '';
        over.addEventListener('click', () => typeof cursor.idx === 'number' && lead?.(cursor.idx));
      },
    ],
  },
  scales: {
    x: { time: false, distr: 3, range: decades },
    y: { distr: 3, range: decades },
  },
  axes: [
    { ...decadeAxis(palette), label: unit, labelSize: 18, size: 28 },
    { ...decadeAxis(palette), size: 64 },
  ],
  series: [
    { label: unit, value: (_plot, value) => (value === null ? '–' : number(value)) },
    {
      label: networkTexts.exactly,
      stroke: palette.accent,
      paths: () => null,
      points: { show: true, size: 5, fill: palette.accent, stroke: palette.accent },
      value: (_plot, value) => (value === null ? '–' : number(value)),
    },
    {
      label: networkTexts.atLeast,
      stroke: palette.second,
      width: 2,
      points: { show: false },
      value: (_plot, value) => (value === null ? '–' : number(value)),
    },
  ],
});

function Degrees({ kind, degrees, whole }: { kind: 'followers' | 'following'; degrees: Counted; whole: boolean }) {
  const words = networkTexts.degrees[kind];
  const data = useMemo(() => sums(degrees), [degrees]);
  // The first of those who have so many: only a site with the whole API ranks all.
  const to = (degree: number): Href | undefined => (whole ? href(['boards', kind], { place: String(placeOf(degrees, degree)) }) : undefined);
  const lead = (index: number) => {
    const there = to(data[0][index] ?? 0);
    if (there) {
      go(there);
    }
  };
  const options = useMemo(() => (palette: Palette) => logarithmic(palette, words.unit, whole ? lead : undefined), [degrees, whole]);
  const total = data[2][0] ?? 0;
  const most = data[0][data[0].length - 1] ?? 0;
  const half = median(degrees, total);
  const spoken = tens(degrees).map(([least, accounts]) => words.atLeast(accounts, number(least)));
  return (
    <Chart
      title={words.title}
      about={sentences(words.about, networkTexts.spread(number(total), number(half), number(most)), ...spoken, whole && networkTexts.press)}
      data={data}
      options={options}
      table={
        <Counts
          heads={[words.unit, networkTexts.accounts]}
          rows={ranges(degrees).map(([from, to_, count]) => [range(number(from), number(to_)), count, to(to_)])}
        />
      }
    />
  );
}

function Counts({ heads, rows }: { heads: readonly [Text, Text]; rows: readonly (readonly [Text, number, Href?])[] }) {
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">{heads[0]}</th>
          <th scope="col" class="num">
            {heads[1]}
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, count, to]) => (
          <tr key={name}>
            <td>{to ? <a href={to}>{name}</a> : name}</td>
            <td class="num">{number(count)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const monthly = (palette: Palette): Omit<uPlot.Options, 'width' | 'height'> => ({
  tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
  scales: { y: { range: (_plot, _least, most) => [0, most * 1.05] } },
  axes: [axis(palette), { ...axis(palette), values: (_plot, splits) => splits.map(number), size: 64 }],
  series: [
    { label: networkTexts.month, value: (_plot, value) => (value === null ? '–' : month(value * 1000)) },
    {
      label: networkTexts.records,
      stroke: palette.accent,
      fill: palette.accent,
      paths: uPlot.paths.bars?.({ size: [0.8, 40] }),
      points: { show: false },
      value: (_plot, value) => (value === null ? '–' : number(value)),
    },
  ],
});

/** Both new and ended follows where the site says what happened, otherwise when records were added that are still there. */
function OverTime({ growth: months }: { growth: Sizes['growth'] }) {
  const loaded = useLoad(growth, [], false);
  return loaded.state === 'done' && loaded.value?.days.length ? <Growth growth={loaded.value} /> : loaded.state !== 'loading' && months.length > 0 && <Added growth={months} />;
}

function Added({ growth }: { growth: Sizes['growth'] }) {
  const data = useMemo((): uPlot.AlignedData => [growth.map(([name]) => Date.parse(`${name}-01T00:00:00Z`) / 1000), growth.map(([, count]) => count)], [growth]);
  return (
    <Chart
      title={networkTexts.growth}
      about={networkTexts.aboutGrowth}
      data={data}
      options={monthly}
      table={<Counts heads={[networkTexts.month, networkTexts.records]} rows={growth.map(([name, count]) => [month(`${name}-01T00:00:00Z`), count])} />}
    />
  );
}

const few = 15;

/** Boards of tags that mean something. */
const meant = new Map<string, Board>([
  ['block', 'blocked'],
  ['mute', 'muted'],
  ['top8', 'top8'],
]);

const placeOfTag = (tag: string): Href => {
  const board = meant.get(tag);
  return board ? href(['boards', board]) : href(['network'], { tag });
};

/** Who of the most followed was given a tag, and by whom. */
function Tagged({ tag }: { tag: string }) {
  const loaded = useLoad(() => taggedMost(tag), [tag], false);
  return (
    <div class="tagged" aria-live="polite">
      <h3>{networkTexts.tagged(clip(tag, 60), number(askedForTag))}</h3>
      <Show loaded={loaded}>
        {(people) =>
          people.length ? (
            <ul class="ranking">
              {people.slice(0, few).map(([person, count]) => (
                <li key={person.address}>
                  <PersonLink person={person} />
                  <a class="num" href={href(['a', person.address, 'followers'], { tags: tagQuery([tag]) })}>
                    {networkTexts.givenBy(count)}
                  </a>
                </li>
              ))}
            </ul>
          ) : (
            <p class="quiet">{networkTexts.nobodyTagged}</p>
          )
        }
      </Show>
      <p>
        <a href={href(['network'])}>{networkTexts.close}</a>
      </p>
    </div>
  );
}

function Tags({ tags, whole, chosen }: { tags: Sizes['tags']; whole: boolean; chosen: string | null }) {
  const [all, showAll] = useState(false);
  const most = Math.max(...tags.map(([, count]) => count));
  return (
    <section class="card chart">
      <h2>{networkTexts.tags}</h2>
      <p class="quiet small">{sentences(networkTexts.aboutTags, whole && networkTexts.pressTag)}</p>
      {whole && chosen !== null && <Tagged key={chosen} tag={chosen} />}
      <table class="tag-bars">
        <thead class="hidden">
          <tr>
            <th scope="col">{networkTexts.tag}</th>
            <th scope="col">{networkTexts.records}</th>
          </tr>
        </thead>
        <tbody>
          {tags.slice(0, all ? tags.length : few).map(([tag, count]) => (
            <tr key={tag}>
              <td>
                {whole ? (
                  <a href={placeOfTag(tag)} title={named(tag)}>
                    <bdi>{named(tag)}</bdi>
                  </a>
                ) : (
                  <bdi title={named(tag)}>{named(tag)}</bdi>
                )}
              </td>
              <td>
                <span style={{ inlineSize: `${(100 * count) / most}%` }} />
                {number(count)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {tags.length > few && (
        <button type="button" aria-expanded={all} onClick={() => showAll(!all)}>
          {all ? networkTexts.fewer : networkTexts.more(number(tags.length))}
        </button>
      )}
    </section>
  );
}
