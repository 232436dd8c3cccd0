// A chart of new and ended follows over time.

import uPlot from 'uplot';
import { reportTexts } from '../texts/later';
import type { Text } from '../text';
import { number } from '../texts/first';
import { axis, type Palette } from './chart';

/** Options of a chart whose data are times in seconds, new follows and ended ones. label names times as called does. */
export const changes =
  (label: Text, called: (time: number) => Text, x: (palette: Palette) => uPlot.Axis = axis) =>
  (palette: Palette): Omit<uPlot.Options, 'width' | 'height'> => {
    const value = (_plot: uPlot, count: number | null) => (count === null ? '–' : number(count));
    return {
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), 'Etc/UTC'),
      scales: { y: { range: (_plot, _least, most) => [0, Math.max(1, most) * 1.05] } },
      axes: [x(palette), { ...axis(palette), values: (_plot, splits) => splits.map(number), size: 64 }],
      series: [
        { label, value: (_plot, time: number | null) => (time === null ? reportTexts.nothing : called(time * 1000)) },
        { label: reportTexts.follows, stroke: palette.accent, width: 2, value },
        { label: reportTexts.unfollows, stroke: palette.second, width: 2, dash: [6, 4], value },
      ],
    };
  };
