// Whose site this is, as its operator says: the page names a title, a logo, a colour and a home.

import type { PictureURL } from './pictures/draw';
import type { Href } from './router';

const said = (name: string): string | undefined => document.querySelector<HTMLMetaElement>(`meta[name="followpress-${name}"]`)?.content;

/** Where the title of the page leads; undefined for the start. */
export const home = said('home') as Href | undefined;
/** A picture of the operator, whose host the policy of the page names. */
export const logo = said('logo') as PictureURL | undefined;

/** The luminance of a colour #rrggbb, roughly, from 0 to 255. */
const luma = (colour: string): number =>
  [299, 587, 114].reduce((sum, weight, i) => sum + (weight * parseInt(colour.slice(1 + 2 * i, 3 + 2 * i), 16)) / 1000, 0);

/** Gives links and buttons the colour of the operator; dark pages have a lighter one. */
export function paint(): void {
  const colour = said('colour');
  if (colour) {
    const { style } = document.documentElement;
    style.setProperty('--accent', `light-dark(${colour}, color-mix(in oklab, ${colour} 45%, white))`);
    style.setProperty('--on-accent', `light-dark(${luma(colour) > 150 ? '#17222e' : '#ffffff'}, #0b1722)`);
  }
}
