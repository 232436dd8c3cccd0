// Loading: what a view shows until its data are there, or if they cannot be had.

import type { Children } from '../elements';
import { useEffect, useRef, useState } from 'preact/hooks';
import { renewal } from '../data/site';
import { href } from '../place';
import { plain } from '../text';
import { texts } from '../texts/first';

export type Loaded<T> = { state: 'loading' } | { state: 'failed'; error: Error; retry: () => void } | { state: 'done'; value: T };

/**
 * Loads when inputs change. What arrives for earlier inputs is dropped. When the page is renewed, it loads again unless
 * renews is false, and what was there stays until the new is.
 */
export function useLoad<T>(load: () => Promise<T>, inputs: readonly unknown[], renews = true): Loaded<T> {
  const [attempt, setAttempt] = useState(0);
  const [answer, set] = useState<{ to: readonly unknown[]; loaded: Loaded<T> }>();
  const asked = [...inputs, attempt];
  useEffect(() => {
    let wanted = true;
    const end = (loaded: Loaded<T>) =>
      wanted &&
      set((before) => {
        if (loaded.state === 'failed' && before?.loaded.state === 'done' && isSame(before.to, asked)) {
          renewal.failed();
          return before;
        }
        return { to: asked, loaded };
      });
    load().then(
      (value) => end({ state: 'done', value }),
      (error: Error) => end({ state: 'failed', error, retry: () => setAttempt(attempt + 1) }),
    );
    return () => {
      wanted = false;
    };
  }, [...asked, renews && renewal.turn]);
  // Not even for one frame is the answer to one question shown with another one.
  return answer && isSame(answer.to, asked) ? answer.loaded : { state: 'loading' };
}

const isSame = (a: readonly unknown[], b: readonly unknown[]): boolean => a.every((input, i) => Object.is(input, b[i]));

/** What was loaded last, while the next is loading: it stays until there is other. */
export function useKept<T>(loaded: Loaded<T>): T | undefined {
  const kept = useRef<T | undefined>(undefined);
  if (loaded.state === 'done') {
    kept.current = loaded.value;
  }
  return kept.current;
}

export function Loading() {
  return (
    <p class="loading" role="status">
      {texts.loading}
    </p>
  );
}

export function Failed({ error, retry }: { error: Error; retry: () => void }) {
  // Of an answer that was made from what is not believed, the cause says so.
  const cause = (error.cause ?? error) as Error & { code?: unknown };
  const isRefused = typeof cause.code === 'string';
  return (
    <div class="failed" role="alert">
      <p>{isRefused ? texts.refused : texts.failed}</p>
      <p class="quiet">{plain(isRefused ? cause.message : error.message)}</p>
      {isRefused && <a href={href(['proof'])}>{texts.proof}</a>}
      <button type="button" onClick={retry}>
        {texts.retry}
      </button>
    </div>
  );
}

/** Shows what was loaded. */
export function Show<T>({ loaded, children }: { loaded: Loaded<T>; children: (value: T) => Children }) {
  switch (loaded.state) {
    case 'loading':
      return <Loading />;
    case 'failed':
      return <Failed error={loaded.error} retry={loaded.retry} />;
    case 'done':
      return <>{children(loaded.value)}</>;
  }
}
