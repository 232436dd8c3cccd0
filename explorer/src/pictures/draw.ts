// Pictures as they are shown: none of a profile gets into the page as it came. Its bytes are read, and if they are
// of a format without scripts, references and gigabytes, its first frame is drawn in the size that is needed.

import { bytesOf, formatOf, isInline } from './format';

declare const isDrawn: unique symbol;

/** The address of a picture that was drawn here. Elements take no other (elements.d.ts). */
export type PictureURL = string & { readonly [isDrawn]: true };

/** Widths and heights in pixels, twice those on the screen. */
const sizes = { avatar: [192, 192], header: [1440, 320] } as const;
export type Kind = keyof typeof sizes;

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

async function draw(bytes: Uint8Array<ArrayBuffer>, kind: Kind): Promise<PictureURL | undefined> {
  const type = formatOf(bytes)?.type;
  if (!type) {
    return undefined;
  }
  // Browsers decode it beside the page; of one that moves, it is the first frame.
  const frame = await createImageBitmap(new Blob([bytes], { type }));
  const [width, height] = sizes[kind];
  const part = { width: Math.min(frame.width, (frame.height * width) / height), height: Math.min(frame.height, (frame.width * height) / width) };
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.min(width, Math.round(part.width)));
  canvas.height = Math.max(1, Math.min(height, Math.round(part.height)));
  const context = canvas.getContext('2d');
  context?.drawImage(frame, (frame.width - part.width) / 2, (frame.height - part.height) / 2, part.width, part.height, 0, 0, canvas.width, canvas.height);
  frame.close();
  const drawn = await new Promise<Blob | null>((done) => canvas.toBlob(done, 'image/webp', 0.9));
  return drawn ? (URL.createObjectURL(drawn) as PictureURL) : undefined;
}

// What was drawn, or could not be, in the order in which it was asked for.
const kept = new Map<string, Promise<PictureURL | undefined>>();
const done = new Map<string, PictureURL>();

const keyOf = (source: string, kind: Kind): string => `${kind} ${source}`;

/** What was drawn before. */
export const drawn = (source: string, kind: Kind): PictureURL | undefined => done.get(keyOf(source, kind));

/** Draws what policy.sourceOf has said; undefined for what is no picture that may be shown. Each is read once. */
export function load(source: string, kind: Kind = 'avatar'): Promise<PictureURL | undefined> {
  const key = keyOf(source, kind);
  const known = kept.get(key);
  if (known) {
    return known;
  }
  const work = async () => {
    try {
      const bytes = isInline(source) ? bytesOf(source) : await reading(() => read(source));
      const url = bytes && (await drawing(() => draw(bytes, kind)));
      if (url) {
        done.set(key, url);
      }
      return url;
    } catch {
      return undefined; // not there, or not to be read by others
    }
  };
  const loading = work();
  kept.set(key, loading);
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
