// Drawings of pictures as circles, for canvases.

import type { PictureURL } from './draw';

/** A drawing as a circle; undefined if it is gone. */
export async function round(url: PictureURL, size: number): Promise<CanvasImageSource | undefined> {
  const image = new Image();
  image.src = url;
  try {
    await image.decode();
  } catch {
    return undefined; // the colour stays
  }
  const { naturalWidth: width, naturalHeight: height } = image;
  const canvas = document.createElement('canvas');
  canvas.width = size;
  canvas.height = size;
  const context = canvas.getContext('2d');
  if (!context) {
    return undefined;
  }
  context.arc(size / 2, size / 2, size / 2, 0, 2 * Math.PI);
  context.clip();
  const scale = size / Math.min(width, height);
  context.drawImage(image, (size - width * scale) / 2, (size - height * scale) / 2, width * scale, height * scale);
  return canvas;
}
