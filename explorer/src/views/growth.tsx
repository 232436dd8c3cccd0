// New and ended follows over all time.

import { useMemo, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { steps, sumsOf, type Growth as Days, type Step } from '../data/ops';
import { growthTexts as words, reportTexts } from '../texts/later';
import { plain } from '../text';
import { date, month, number } from '../texts/first';
import { changes } from '../ui/changes';
import { Chart } from '../ui/chart';

/** Rows of the table: what is older is in the chart only. */
const mostRows = 400;

const names = { day: date, week: date, month };
const options = {
  day: changes(words.begins.day, date),
  week: changes(words.begins.week, date),
  month: changes(words.begins.month, month),
};

const isStep = (name: string): name is Step => steps.includes(name as Step);

/** Not many more points than a chart can show. */
const usual = ({ days: { length } }: Days): Step => (length > 3 * 366 ? 'month' : length > 92 ? 'week' : 'day');

export function Growth({ growth }: { growth: Days }) {
  const [chosen, choose] = useState<Step>();
  const step = chosen ?? usual(growth);
  const sums = useMemo(() => sumsOf(growth, step), [growth, step]);
  const data = useMemo((): uPlot.AlignedData => [sums[0].map((time) => time / 1000), sums[1], sums[2]], [sums]);
  const [follows, unfollows] = [sums[1], sums[2]].map((counts) => counts.reduce((sum, count) => sum + count, 0));
  return (
    <Chart
      title={words.title}
      about={words.about(number(follows ?? 0), number(unfollows ?? 0), date(`${growth.first}T00:00:00Z`))}
      data={data}
      options={options[step]}
      tools={
        <select
          aria-label={words.by}
          value={step}
          onChange={({ currentTarget: { value } }) => choose(isStep(value) ? value : undefined)}
        >
          {steps.map((one) => (
            <option key={one} value={plain(one)}>
              {words.steps[one]}
            </option>
          ))}
        </select>
      }
      table={<Table sums={sums} step={step} />}
    />
  );
}

function Table({ sums: [starts, follows, unfollows], step }: { sums: ReturnType<typeof sumsOf>; step: Step }) {
  const first = Math.max(0, starts.length - mostRows);
  const rows = starts.slice(first).map((start, i) => [start, follows[first + i] ?? 0, unfollows[first + i] ?? 0] as const);
  return (
    <>
      {first > 0 && <p class="quiet small">{words.newest(number(mostRows))}</p>}
      <table>
        <thead>
          <tr>
            <th scope="col">{words.begins[step]}</th>
            <th scope="col" class="num">
              {reportTexts.follows}
            </th>
            <th scope="col" class="num">
              {reportTexts.unfollows}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.reverse().map(([start, followed, unfollowed]) => (
            <tr key={start}>
              <td>{names[step](start)}</td>
              <td class="num">{number(followed)}</td>
              <td class="num">{number(unfollowed)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
