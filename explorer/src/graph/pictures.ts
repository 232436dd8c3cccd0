// Round pictures of accounts for a canvas.

import type { Person } from '../data/site';
import { load } from '../pictures/draw';
import { ask, sourceOf } from '../pictures/policy';
import { round } from '../pictures/round';
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
      const url = source && (await load(source));
      const image = url && (await round(url, size));
      if (image && !signal.aborted) {
        each(index, image);
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
}
