// What bytes are, by what they begin with, whatever anybody says of them. Nothing here needs a browser.

export interface Format {
  type: 'image/png' | 'image/jpeg' | 'image/gif' | 'image/webp' | 'image/avif';
  /** In pixels: the largest that the file says. */
  width: number;
  height: number;
}

/** Pixels of a picture at most: small files may unpack to gigabytes. */
export const mostPixels = 1 << 24;
/** Passes over all pixels that a JPEG may ask for. */
const mostScans = 64;

type Size = readonly [width: number, height: number];

const larger = (a: Size | undefined, b: Size | undefined): Size | undefined =>
  a && b ? [Math.max(a[0], b[0]), Math.max(a[1], b[1])] : (a ?? b);

/** The format of a picture, if it is one of the five and not too large; undefined for anything else. */
export function formatOf(bytes: Uint8Array): Format | undefined {
  try {
    for (const [type, read] of readers) {
      const size = read(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
      if (size) {
        const [width, height] = size;
        return width > 0 && height > 0 && width * height <= mostPixels ? { type, width, height } : undefined;
      }
    }
  } catch (error) {
    if (!(error instanceof RangeError)) {
      throw error;
    }
  }
  return undefined; // it ends too early
}

const text = (view: DataView, at: number, length: number): string =>
  Array.from({ length }, (_, i) => String.fromCharCode(view.getUint8(at + i))).join('');

function png(view: DataView): Size | undefined {
  return text(view, 0, 8) === '\x89PNG\r\n\x1a\n' && text(view, 12, 4) === 'IHDR' ? [view.getUint32(16), view.getUint32(20)] : undefined;
}

function jpeg(view: DataView): Size | undefined {
  if (view.getUint16(0) !== 0xffd8 || view.getUint8(2) !== 0xff) {
    return undefined;
  }
  let size: Size | undefined;
  let scans = 0;
  for (let at = 2; at + 4 <= view.byteLength; ) {
    const marker = view.getUint8(at + 1);
    // Data of a scan, and markers without a length.
    if (view.getUint8(at) !== 0xff || marker === 0 || marker === 0xff || marker === 1 || (marker >= 0xd0 && marker <= 0xd8)) {
      at++;
      continue;
    }
    if (marker === 0xd9) {
      break;
    }
    if (marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc) {
      size = larger(size, [view.getUint16(at + 7), view.getUint16(at + 5)]);
    }
    if (marker === 0xda && ++scans > mostScans) {
      return [Infinity, Infinity];
    }
    at += 2 + view.getUint16(at + 2);
  }
  return size;
}

function gif(view: DataView): Size | undefined {
  if (!/^GIF8[79]a$/.test(text(view, 0, 6))) {
    return undefined;
  }
  const colours = (flags: number) => (flags & 0x80 ? 3 << ((flags & 7) + 1) : 0);
  // The first picture may be larger than the screen that the file says, and then counts.
  for (let at = 13 + colours(view.getUint8(10)); ; ) {
    const kind = view.getUint8(at);
    if (kind === 0x2c) {
      const place = (offset: number) => view.getUint16(at + offset, true);
      return larger([view.getUint16(6, true), view.getUint16(8, true)], [place(1) + place(5), place(3) + place(7)]);
    }
    if (kind !== 0x21) {
      return undefined;
    }
    at += 2;
    while (view.getUint8(at)) {
      at += 1 + view.getUint8(at);
    }
    at++;
  }
}

function webp(view: DataView): Size | undefined {
  if (text(view, 0, 4) !== 'RIFF' || text(view, 8, 4) !== 'WEBP') {
    return undefined;
  }
  const three = (at: number) => view.getUint16(at, true) | (view.getUint8(at + 2) << 16);
  let size: Size | undefined;
  for (let at = 12; at + 18 <= view.byteLength; ) {
    const [name, length, data] = [text(view, at, 4), view.getUint32(at + 4, true), at + 8];
    if (name === 'VP8X') {
      size = larger(size, [1 + three(data + 4), 1 + three(data + 7)]);
    } else if (name === 'ANMF') {
      size = larger(size, [1 + three(data + 6), 1 + three(data + 9)]);
    } else if (name === 'VP8 ') {
      size = larger(size, [view.getUint16(data + 6, true) & 0x3fff, view.getUint16(data + 8, true) & 0x3fff]);
    } else if (name === 'VP8L') {
      const bits = view.getUint32(data + 1, true);
      size = larger(size, [1 + (bits & 0x3fff), 1 + ((bits >>> 14) & 0x3fff)]);
    }
    at = data + length + (length & 1);
  }
  return size;
}

// Boxes that have boxes, and the bytes before those.
const boxes: Record<string, number> = { meta: 4, iprp: 0, ipco: 0, moov: 0, trak: 0, mdia: 0, minf: 0, stbl: 0, stsd: 8, av01: 78 };

function avif(view: DataView): Size | undefined {
  if (text(view, 4, 4) !== 'ftyp') {
    return undefined;
  }
  const brands = text(view, 8, Math.min(view.getUint32(0), view.byteLength, 256) - 8);
  if (!/^(?:....)*avi[fs]/s.test(brands)) {
    return undefined;
  }
  let size: Size | undefined;
  const read = (from: number, to: number) => {
    for (let at = from; at + 8 <= to; ) {
      const [length, name] = [view.getUint32(at), text(view, at + 4, 4)];
      const end = length === 0 ? to : at + length;
      if ((length !== 0 && length < 8) || end > to) {
        throw new RangeError(name); // also one with a length of 64 bits
      }
      if (name === 'ispe') {
        size = larger(size, [view.getUint32(at + 12), view.getUint32(at + 16)]);
      } else if (name === 'av01') {
        size = larger(size, [view.getUint16(at + 32), view.getUint16(at + 34)]);
      }
      if (Object.hasOwn(boxes, name)) {
        read(at + 8 + (boxes[name] ?? 0), end);
      }
      at = end;
    }
  };
  read(0, view.byteLength);
  return size;
}

const readers: [Format['type'], (view: DataView) => Size | undefined][] = [
  ['image/png', png],
  ['image/gif', gif],
  ['image/webp', webp],
  ['image/avif', avif],
  ['image/jpeg', jpeg],
];

/** Bytes of a picture that is part of its own URL, at most. */
export const mostInline = 64 << 10;

const inline = /^data:([^,]*),/i;

/** Whether a picture is part of its own URL, so that showing it asks nobody. */
export const isInline = (text: string): boolean => inline.test(text.trimStart());

/** The bytes in such a URL, whatever it says of their type; undefined if there are too many, or it is broken. */
export function bytesOf(url: string): Uint8Array<ArrayBuffer> | undefined {
  if (url.length > 4 * mostInline) {
    return undefined;
  }
  const [whole, said = ''] = url.trimStart().match(inline) ?? [];
  if (whole === undefined) {
    return undefined;
  }
  const [body = ''] = url.trimStart().slice(whole.length).replace(/[\t\n\r]/g, '').trimEnd().split('#', 1);
  // Each letter is a byte.
  const encoded = Array.from(new TextEncoder().encode(body), (byte) => String.fromCharCode(byte)).join('');
  const decoded = encoded.replace(/%([0-9a-f]{2})/gi, (_, digits: string) => String.fromCharCode(parseInt(digits, 16)));
  try {
    const binary = /; *base64\s*$/i.test(said) ? atob(decoded) : decoded;
    return binary.length > mostInline ? undefined : Uint8Array.from(binary, (letter) => letter.charCodeAt(0));
  } catch {
    return undefined; // not base64
  }
}
