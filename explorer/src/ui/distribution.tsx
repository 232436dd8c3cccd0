// Where an account is among all: a picture of a distribution, small enough for a line of a profile.

import { peopleTexts } from '../accounttexts';
import type { Distribution } from '../data/distribution';
import { number } from '../texts';

const width = 8;
const gap = 1;
const height = 24;

export function Bars({ distribution: { bins }, count }: { distribution: Distribution; count: number }) {
  // Most accounts have few: by the logarithm, the few that have most are seen too.
  const most = Math.log1p(Math.max(...bins.map(({ accounts }) => accounts)));
  const size = bins.length * (width + gap) - gap;
  return (
    <svg
      class="bars"
      viewBox={`0 0 ${size} ${height}`}
      width={size * 2}
      height={height * 2}
      aria-hidden="true"
      focusable="false"
    >
      {bins.map(({ from, to, accounts }, i) => {
        const high = accounts ? Math.max(2, (Math.log1p(accounts) / most) * height) : 1;
        return (
          <rect
            key={from}
            class={count >= from && count <= to ? 'here' : undefined}
            x={i * (width + gap)}
            y={height - high}
            width={width}
            height={high}
            rx={1}
          >
            <title>{peopleTexts.bin(number(from), number(to), number(accounts))}</title>
          </rect>
        );
      })}
    </svg>
  );
}
