// QR codes for followpress.js, which loads this module when it is first asked for one.
// lib/uqr is uqr 0.1.3 of npm, like server/internal/answer/profile/profile.go's library a translation of that of Nayuki.

import { encode } from './lib/uqr/index.mjs';

const quietZone = 4;

/** outline returns a text as a QR code: the dark modules as a path of SVG, in a square of a size with a quiet zone. */
export function outline(text) {
  const { data, size } = encode([...new TextEncoder().encode(text)], { ecc: 'M', border: 0 });
  let path = '';
  data.forEach((row, y) => {
    for (const { 0: { length }, index } of row.map(Number).join('').matchAll(/1+/g)) {
      path += `M${index + quietZone} ${y + quietZone}h${length}v1h-${length}z`;
    }
  });
  return { size: size + 2 * quietZone, path };
}

/** picture returns a text as a QR code: the SVG picture that server/internal/answer/profile/profile.go makes of it, byte for byte. */
export function picture(text) {
  const { size: whole, path } = outline(text);
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${whole} ${whole}" shape-rendering="crispEdges">` +
    `<path fill="#fff" d="M0 0h${whole}v${whole}H0z"/><path d="${path}"/></svg>`
  );
}
