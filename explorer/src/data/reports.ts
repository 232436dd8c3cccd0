// Reports of what changed between two sites, which the publisher keeps beside the site.

import type { Href } from '../place';
import { hasReports } from '../brand';
import { base, once, optional } from './site';

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

/** All reports, the newest first; none of a site without. They are made after a site is signed, so nobody has signed them. */
export const reports = once(async () => (hasReports && (await optional<{ reports: Report[] }>('../_reports/index', {}, false))?.reports) || []);

/** The address of a report for people. */
export const reportURL = ({ date }: Report): Href => `${base}_reports/${encodeURIComponent(date)}.html` as Href;
