// Files that are made here and saved by the browser.

import type { Text } from '../text';

/** Saves a file under a name. */
export function save(file: Blob, name: Text): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
