// Reports of what changed between two sites, which the publisher keeps beside the site.

import type { Href } from '../place';
import { base, keep, once, optional } from './site';

export interface Report {
  /** Its name, a date. */
  date: string;
  from: string;
  to: string;
  follows: number;
  unfollows: number;
  new_lists: number;
  gone_lists: number;
}

/** All reports, the newest first; null if the site has none. They are made after a site is signed, so nobody has signed them. */
export const reports = once(async () => {
  const found = (await optional<{ reports: Report[] }>('../_reports/index', {}, false))?.reports ?? null;
  keep('reports', found?.length ? 'some' : ''); // for the navigation
  return found;
});

/** The address of a report for people. */
export const reportURL = ({ date }: Report): Href => `${base}_reports/${encodeURIComponent(date)}.html` as Href;
