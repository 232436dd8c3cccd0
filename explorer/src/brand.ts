// What the operator says of the site: its title, a logo, a colour and a home, and what there is beside it.

import type { PictureURL } from './pictures/draw';
import type { Href } from './router';

const said = (name: string): string | undefined => document.querySelector<HTMLMetaElement>(`meta[name="followpress-${name}"]`)?.content;

/** Where the title of the page leads; undefined for the start. */
export const home = said('home') as Href | undefined;
/** A picture of the operator, whose host the policy of the page names. */
export const logo = said('logo') as PictureURL | undefined;

/** Whether there are reports beside the site. To ask for what is not there would be an error on the console. */
export const hasReports = said('reports') !== undefined;

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
