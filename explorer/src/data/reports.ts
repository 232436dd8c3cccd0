// Reports of what changed between two sites, which the publisher keeps beside the site.

import type { Href } from '../place';
import { base, once } from './site';

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

/** All reports, the newest first; null if the site has none. */
export const reports = once(async (): Promise<Report[] | null> => {
  const response = await fetch(`${base}_reports/index`);
  // A bucket that may not be listed answers 403 for what is not there.
  if (response.status === 404 || response.status === 403) {
    return null;
  }
  if (!response.ok) {
    throw new Error(`_reports/index: status ${response.status}`);
  }
  return ((await response.json()) as { reports: Report[] }).reports;
});

/** The address of a report for people. */
export const reportURL = ({ date }: Report): Href => `${base}_reports/${encodeURIComponent(date)}.html` as Href;
