// The history of reports, which are pages of their own.

import { useMemo, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import { reports, reportURL, type Report } from '../data/reports';
import { seal } from '../data/site';
import { reportTexts } from '../texts/later';
import { plain } from '../text';
import { date, day, number, sentences } from '../texts/first';
import { changes } from '../ui/changes';
import { axis, Chart } from '../ui/chart';
import { Heading } from '../ui/heading';
import { Show, useLoad } from '../ui/load';

export function Reports() {
  const loaded = useLoad(reports, []);
  return (
    <div class="stack">
      <Heading title={reportTexts.title} />
      <Show loaded={loaded}>{(all) => (all.length ? <History all={all} /> : <p class="empty">{reportTexts.none}</p>)}</Show>
    </div>
  );
}

function History({ all }: { all: readonly Report[] }) {
  return (
    <>
      <p class="quiet">{sentences(reportTexts.about, seal.keys.length > 0 && reportTexts.unsigned)}</p>
      {all.length > 1 ? <Changes all={all} /> : null}
      <Table all={all} />
    </>
  );
}

/** What a chart of more would not show. */
const shown = 366;

/** How far dates are apart, in seconds. */
const steps = [1, 2, 5, 10, 15, 30, 60, 90, 180, 365].map((days) => days * 86_400);

const daily = changes(reportTexts.date, date, (palette) => ({ ...axis(palette), incrs: steps, values: (_plot, splits) => splits.map((time) => day(time * 1000)) }));

function Changes({ all }: { all: readonly Report[] }) {
  const data = useMemo((): uPlot.AlignedData => {
    const dated = all.slice(0, shown).map((report) => ({ ...report, time: Date.parse(report.date) / 1000 }));
    const sorted = dated.filter(({ time }) => !Number.isNaN(time)).sort((a, b) => a.time - b.time);
    return [sorted.map(({ time }) => time), sorted.map(({ follows }) => follows), sorted.map(({ unfollows }) => unfollows)];
  }, [all]);
  return <Chart title={reportTexts.chart} about={reportTexts.aboutChart(number(data[0].length))} data={data} options={daily} />;
}

/** Rows of a table that is not opened. */
const folded = 31;

function Table({ all }: { all: readonly Report[] }) {
  const [opened, open] = useState(false);
  const rows = opened ? all : all.slice(0, folded);
  return (
    <>
      <div class="scroll reports" tabIndex={0} role="region" aria-label={reportTexts.title}>
        <table>
          <thead>
            <tr>
              <th scope="col">{reportTexts.date}</th>
              <th scope="col">{reportTexts.between}</th>
              {[reportTexts.follows, reportTexts.unfollows, reportTexts.newLists, reportTexts.goneLists].map((name) => (
                <th key={name} scope="col" class="num">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((report) => (
              <tr key={report.date}>
                <td>
                  <a href={reportURL(report)}>{plain(report.date)}</a>
                </td>
                <td class="quiet">
                  {reportTexts.span(date(report.from), date(report.to))}
                </td>
                {[report.follows, report.unfollows, report.new_lists, report.gone_lists].map((count, i) => (
                  <td key={i} class="num">
                    {number(count)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {all.length > folded && (
        <p>
          <button type="button" aria-expanded={opened} onClick={() => open(!opened)}>
            {opened ? reportTexts.fewer : reportTexts.more(number(all.length))}
          </button>
        </p>
      )}
    </>
  );
}
