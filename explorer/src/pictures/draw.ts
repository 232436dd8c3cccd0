// Pictures as they are shown: none of a profile gets into the page as it came. Its bytes are read, and if they are
// of a format without scripts, references and gigabytes, its first frame is drawn in the size that is needed.

import { bytesOf, formatOf, isInline } from './format';

declare const isDrawn: unique symbol;

/** The address of a picture that was drawn here. Elements take no other (elements.d.ts). */
export type PictureURL = string & { readonly [isDrawn]: true };

/** Width and height in pixels, twice those on the screen. */
const size = 192;

/** Bytes of a picture of another host, at most. */
const most = 4 << 20;
const patience = 20_000; // milliseconds
const mostKept = 1_000;

/** Does work when fewer than so many others are at it. */
function limited(limit: number): <T>(work: () => Promise<T>) => Promise<T> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (work) => {
    if (running >= limit) {
      await new Promise<void>((next) => waiting.push(next));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) {
        next();
      } else {
        running--;
      }
    }
  };
}

const reading = limited(6);
const drawing = limited(2); // each may need 64 MiB

async function read(url: string): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const response = await fetch(url, { mode: 'cors', credentials: 'omit', referrerPolicy: 'no-referrer', signal: AbortSignal.timeout(patience) });
  const reader = response.ok ? response.body?.getReader() : undefined;
  if (!reader) {
    return undefined;
  }
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    length += part.value.length;
    if (length > most) {
      await reader.cancel();
      return undefined;
    }
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

async function draw(bytes: Uint8Array<ArrayBuffer>): Promise<PictureURL | undefined> {
  const type = formatOf(bytes)?.type;
  if (!type) {
    return undefined;
  }
  // Browsers decode it beside the page; of one that moves, it is the first frame.
  const frame = await createImageBitmap(new Blob([bytes], { type }));
  const part = Math.min(frame.width, frame.height);
  const canvas = document.createElement('canvas');
  canvas.width = Math.min(size, part);
  canvas.height = canvas.width;
  const context = canvas.getContext('2d');
  context?.drawImage(frame, (frame.width - part) / 2, (frame.height - part) / 2, part, part, 0, 0, canvas.width, canvas.height);
  frame.close();
  const drawn = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/webp', 0.9));
  return drawn ? (URL.createObjectURL(drawn) as PictureURL) : undefined;
}

// What was drawn, or could not be, in the order in which it was asked for.
const kept = new Map<string, Promise<PictureURL | undefined>>();
const done = new Map<string, PictureURL>();

/** What was drawn before. */
export const drawn = (source: string): PictureURL | undefined => done.get(source);

/** Draws what policy.sourceOf has said; undefined for what is no picture that may be shown. Each is read once. */
export function load(source: string): Promise<PictureURL | undefined> {
  const known = kept.get(source);
  if (known) {
    return known;
  }
  const work = async () => {
    try {
      const bytes = isInline(source) ? bytesOf(source) : await reading(() => read(source));
      const url = bytes && (await drawing(() => draw(bytes)));
      if (url) {
        done.set(source, url);
      }
      return url;
    } catch {
      return undefined; // not there, or not to be read by others
    }
  };
  const loading = work();
  kept.set(source, loading);
  const [oldest] = kept.keys();
  if (kept.size > mostKept && oldest !== undefined) {
    kept.delete(oldest);
    const url = done.get(oldest);
    done.delete(oldest);
    if (url) {
      URL.revokeObjectURL(url); // where it is shown, it stays
    }
  }
  return loading;
}
