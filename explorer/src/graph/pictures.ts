// Round pictures of accounts for a canvas.

import type { Person } from '../data/site';
import { load, type PictureURL } from '../pictures/draw';
import { ask, sourceOf } from '../pictures/policy';
import type { Settings } from '../settings';

const size = 64;
const atOnce = 6;

/** Loads pictures of people, and calls each with those that there are. */
export async function loadPictures(
  people: readonly Person[],
  settings: Settings,
  each: (index: number, image: CanvasImageSource) => void,
  signal: AbortSignal,
): Promise<void> {
  let next = 0;
  const work = async () => {
    while (next < people.length && !signal.aborted) {
      const index = next++;
      const avatar = people[index]?.avatar ?? '';
      ask(avatar, settings);
      const source = sourceOf(avatar, settings);
      const url = source && (await load(source, 'avatar'));
      const image = url && (await round(url));
      if (image && !signal.aborted) {
        each(index, image);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}

async function round(url: PictureURL): Promise<CanvasImageSource | undefined> {
  const image = new Image();
  image.src = url;
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
  if (!context) {
    return undefined;
  }
  context.arc(size / 2, size / 2, size / 2, 0, 2 * Math.PI);
  context.clip();
  const scale = size / Math.min(width, height);
  context.drawImage(image, (size - width * scale) / 2, (size - height * scale) / 2, width * scale, height * scale);
  return canvas;
}
