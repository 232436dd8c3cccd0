// Loading: what a view shows until its data are there, or if they cannot be had.

import type { Children } from '../elements';
import { useEffect, useState } from 'preact/hooks';
import { plain } from '../text';
import { texts } from '../texts';

export type Loaded<T> = { state: 'loading' } | { state: 'failed'; error: Error; retry: () => void } | { state: 'done'; value: T };

/** Loads when inputs change. What arrives for earlier inputs is dropped. */
export function useLoad<T>(load: () => Promise<T>, inputs: readonly unknown[]): Loaded<T> {
  const [attempt, setAttempt] = useState(0);
  const [answer, set] = useState<{ to: readonly unknown[]; loaded: Loaded<T> }>();
  const asked = [...inputs, attempt];
  useEffect(() => {
    let wanted = true;
    const end = (loaded: Loaded<T>) => wanted && set({ to: asked, loaded });
    load().then(
      (value) => end({ state: 'done', value }),
      (error: Error) => end({ state: 'failed', error, retry: () => setAttempt(attempt + 1) }),
    );
    return () => {
      wanted = false;
    };
  }, asked);
  // Not even for one frame is the answer to one question shown with another one.
  return answer?.to.every((input, i) => Object.is(input, asked[i])) ? answer.loaded : { state: 'loading' };
}

export function Loading() {
  return (
    <p class="loading" role="status">
      {texts.loading}
    </p>
  );
}

export function Failed({ error, retry }: { error: Error; retry: () => void }) {
  return (
    <div class="failed" role="alert">
      <p>{texts.failed}</p>
      <p class="quiet">{plain(error.message)}</p>
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
