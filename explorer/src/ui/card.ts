// A picture of an account, to be sent to somebody: nothing is in it but our own drawing.

import type { Profile } from '../data/people';
import { load } from '../pictures/draw';
import { sourceOf } from '../pictures/policy';
import { round } from '../pictures/round';
import { cardTexts as words } from '../texts/profile';
import type { Settings } from '../settings';
import { clip, type Text } from '../text';
import { number } from '../texts/first';
import { colours } from './colours';
import { called, hue, initial, nameOf } from './person';

/** In pixels, as pages that link to others show pictures. */
export const width = 1200;
export const height = 630;

const edge = 72;
const face = 220;
const code = 236; // the side of the QR code
const fonts = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

export interface Shown {
  person: Profile;
  address: Text;
  /** The outline of a QR code, of so many modules a side. */
  qr: { size: number; path: string };
  foot: Text;
}

/** Draws a text from a point to the right. What is too wide ends in an ellipsis, and nothing is drawn beyond its line. */
function write(context: CanvasRenderingContext2D, text: Text, [x, y]: [number, number], size: number, most: number, weight = 400): void {
  context.save();
  context.font = `${weight} ${size}px ${fonts}`;
  context.beginPath();
  context.rect(x, y - 1.1 * size, most, 1.5 * size);
  context.clip();
  let shown: string = text;
  if (context.measureText(shown).width > most) {
    const letters = Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
    let [fits, over] = [0, letters.length];
    while (over - fits > 1) {
      const middle = (fits + over) >> 1;
      if (context.measureText(letters.slice(0, middle).join('') + '…').width <= most) {
        fits = middle;
      } else {
        over = middle;
      }
    }
    shown = letters.slice(0, fits).join('') + '…';
  }
  context.fillText(shown, x, y);
  context.restore();
}

async function portrait(context: CanvasRenderingContext2D, person: Profile, settings: Settings): Promise<void> {
  const [x, y, r] = [edge + face / 2, edge + face / 2, face / 2];
  const source = sourceOf(person.avatar, settings);
  const url = source && (await load(source));
  const picture = url && (await round(url, face));
  if (picture) {
    context.drawImage(picture, edge, edge);
    return;
  }
  context.save();
  context.fillStyle = `hsl(${hue(person.address)} 45% 30%)`;
  context.beginPath();
  context.arc(x, y, r, 0, 2 * Math.PI);
  context.fill();
  context.clip();
  context.fillStyle = '#ffffff';
  context.font = `600 ${face * 0.45}px ${fonts}`;
  context.textAlign = 'center';
  context.textBaseline = 'middle';
  context.fillText(initial(person.name) ?? person.address.charAt(2).toUpperCase(), x, y + face * 0.03);
  context.restore();
}

/** Draws a card on a canvas, in the colours of the page. */
export async function drawCard(canvas: HTMLCanvasElement, { person, address, qr, foot }: Shown, settings: Settings): Promise<void> {
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d');
  if (!context) {
    throw new Error('no canvas');
  }
  const { ground, text, quiet, accent, line } = colours('ground', 'text', 'quiet', 'accent', 'line');
  context.fillStyle = ground;
  context.fillRect(0, 0, width, height);
  context.fillStyle = accent;
  context.fillRect(0, height - 12, width, 12);
  await portrait(context, person, settings);

  const left = edge + face + 48;
  const room = width - edge - left;
  const name = nameOf(person) ? clip(person.name, 200) : called(person);
  context.font = `700 64px ${fonts}`;
  context.fillStyle = text;
  write(context, name, [left, edge + 108], context.measureText(name).width > room ? 48 : 64, room, 700);
  context.fillStyle = quiet;
  write(context, address, [left, edge + 168], 28, room);

  const counts: [Text, number | undefined][] = [
    [words.followers, person.followers],
    [words.following, person.following],
  ];
  let x = edge;
  for (const [label, count] of counts) {
    if (count !== undefined) {
      context.fillStyle = text;
      write(context, number(count), [x, 432], 72, 340, 700);
      context.fillStyle = quiet;
      write(context, label, [x, 480], 32, 340);
      x += 380;
    }
  }
  context.fillStyle = line;
  context.fillRect(edge, 520, width - 2 * edge - code - 40, 2);
  context.fillStyle = quiet;
  write(context, foot, [edge, 568], 28, width - 2 * edge - code - 40);

  // Cameras read dark on light only.
  context.save();
  context.translate(width - edge - code, height - edge - code + 16);
  context.fillStyle = '#ffffff';
  context.fillRect(0, 0, code, code);
  context.scale(code / qr.size, code / qr.size);
  context.fillStyle = '#000000';
  context.fill(new Path2D(qr.path));
  context.restore();
}
