// Round pictures of accounts for a canvas. A picture of another host may be drawn, only not be read again.

import type { Person } from '../data/site';
import { isInline, picture } from '../ui/links';

const size = 64;
const atOnce = 6;

/** Loads pictures of people, and calls each with those that there are. Others may be asked for only if allowed. */
export async function loadPictures(
  people: readonly Person[],
  allowed: boolean,
  each: (index: number, image: CanvasImageSource) => void,
  signal: AbortSignal,
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < people.length && !signal.aborted) {
      const index = next++;
      const avatar = people[index]?.avatar ?? '';
      const source = allowed || isInline(avatar) ? picture(avatar) : undefined;
      const image = source && (await round(source));
      if (image && !signal.aborted) {
        each(index, image);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

async function round(source: string): Promise<CanvasImageSource | undefined> {
  const image = new Image();
  image.decoding = 'async';
  image.referrerPolicy = 'no-referrer';
  image.src = source;
  try {
    await image.decode();
  } catch {
    return undefined; // the colour stays
  }
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = document.createElement('canvas');
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext('2d');
  if (!context || !width || !height) {
    return undefined;
  }
  context.arc(size / 2, size / 2, size / 2, 0, 2 * Math.PI);
  context.clip();
  const scale = size / Math.min(width, height);
  context.drawImage(image, (size - width * scale) / 2, (size - height * scale) / 2, width * scale, height * scale);
  return canvas;
}
