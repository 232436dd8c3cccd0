// A chart with the table of what it shows.

import type { Children } from '../elements';
import { useEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';
import { chartTexts } from '../texts/later';
import type { Text } from '../text';
import { colours, useTheme } from './colours';

/** Colours of charts. */
export type Palette = Record<'text' | 'quiet' | 'line' | 'accent' | 'second' | 'ground', string>;

export interface ChartProps {
  title: Text;
  /** What the chart shows, in a sentence. */
  about: Text;
  data: uPlot.AlignedData;
  options: (palette: Palette) => Omit<uPlot.Options, 'width' | 'height'>;
  /** What changes what the chart shows. */
  tools?: Children;
  /** The same for those who do not see it, unless it is beside the chart anyway. */
  table?: Children;
}

const height = 300;

export function Chart({ title, about, data, options, tools, table }: ChartProps) {
  const box = useRef<HTMLDivElement>(null);
  const theme = useTheme();
  useEffect(() => {
    const element = box.current;
    if (!element) {
      return;
    }
    const palette = colours('text', 'quiet', 'line', 'accent', 'second', 'ground');
    const size = () => ({ width: element.clientWidth, height });
    const usual = { cursor: { drag: { x: false, y: false } }, legend: { markers: { width: 7 } } }; // filled squares
    const plot = new uPlot({ ...usual, ...options(palette), ...size() }, data, element);
    const resized = new ResizeObserver(() => {
      if (element.clientWidth !== plot.width) {
        plot.setSize(size());
      }
    });
    resized.observe(element);
    return () => {
      resized.disconnect();
      plot.destroy();
    };
  }, [theme, data, options]);
  return (
    <section class="chart card">
      <h2>{title}</h2>
      <p class="quiet small">{about}</p>
      {tools && <p>{tools}</p>}
      <div ref={box} class="plot" role="img" aria-label={chartTexts.label(title, about)} />
      {table && (
        <details>
          <summary>{chartTexts.table}</summary>
          {table}
        </details>
      )}
    </section>
  );
}

/** What all axes have. */
export const axis = (palette: Palette): uPlot.Axis => ({
  stroke: palette.quiet,
  font: '12px system-ui, sans-serif',
  labelFont: '12px system-ui, sans-serif',
  grid: { stroke: palette.line, width: 1 },
  ticks: { stroke: palette.line, width: 1, size: 4 },
});
