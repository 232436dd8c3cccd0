// The module of the client library that makes QR codes.

declare module '@followpress/qr' {
  /** The outline of the QR code of a text: a path of SVG, in a square with so many modules a side, its margin included. */
  export function outline(text: string): { size: number; path: string };
}
