import type { Options } from './followpress.js';

/** The base URLs that the service's clients ask by default. */
export declare const service: readonly string[];

/**
 * Replaces the global fetch: requests below a URL of `from` are answered from the objects of
 * the site at `base`, all others go where they went.
 *
 * @returns a function that undoes it
 */
export declare function install(
  options: Options & {
    /** URL of the folder or bucket that has `_site`. */
    base: string | URL;
    /** Base URLs of the API that is replaced, with their path; those of `service` by default. */
    from?: string | readonly string[];
  },
): () => void;
