// The letter case of addresses that tells a mistyped one (EIP-55). Nothing here needs a browser.

import { hex } from './hex';

const rate = 136; // bytes of a block of Keccak-256
const all = (1n << 64n) - 1n;
const turned = (lane: bigint, by: number): bigint => ((lane << BigInt(by)) | (lane >> BigInt(64 - by))) & all;

/** Keccak-f[1600] on 25 lanes; the lane of column x and row y is x + 5 * y. */
function permute(lanes: BigUint64Array): void {
  const lane = (x: number, y: number): bigint => lanes[(x % 5) + 5 * y] ?? 0n;
  let register = 1; // which makes the round constants
  for (let round = 0; round < 24; round++) {
    const columns = Array.from({ length: 5 }, (_, x) => lane(x, 0) ^ lane(x, 1) ^ lane(x, 2) ^ lane(x, 3) ^ lane(x, 4));
    const parity = columns.map((_, x) => (columns[(x + 4) % 5] ?? 0n) ^ turned(columns[(x + 1) % 5] ?? 0n, 1));
    for (let i = 0; i < 25; i++) {
      lanes[i]! ^= parity[i % 5] ?? 0n;
    }
    let [x, y] = [1, 0];
    let moving = lane(x, y);
    for (let t = 0; t < 24; t++) {
      [x, y] = [y, (2 * x + 3 * y) % 5];
      const next = lane(x, y);
      lanes[x + 5 * y] = turned(moving, (((t + 1) * (t + 2)) / 2) % 64);
      moving = next;
    }
    const before = lanes.slice();
    for (let i = 0; i < 25; i++) {
      const row = i - (i % 5);
      lanes[i]! ^= ~(before[row + ((i + 1) % 5)] ?? 0n) & (before[row + ((i + 2) % 5)] ?? 0n);
    }
    for (let j = 0; j < 7; j++) {
      register = ((register << 1) ^ ((register >> 7) * 0x171)) & 0xff;
      if (register & 2) {
        lanes[0]! ^= 1n << BigInt((1 << j) - 1);
      }
    }
  }
}

/** The Keccak-256 of bytes, in hexadecimal. */
export function keccak256(bytes: Uint8Array): string {
  const lanes = new BigUint64Array(25);
  const padded = new Uint8Array((Math.floor(bytes.length / rate) + 1) * rate);
  padded.set(bytes);
  padded[bytes.length]! ^= 0x01;
  padded[padded.length - 1]! ^= 0x80;
  const words = new DataView(padded.buffer);
  for (let from = 0; from < padded.length; from += rate) {
    for (let i = 0; i < rate / 8; i++) {
      lanes[i]! ^= words.getBigUint64(from + 8 * i, true);
    }
    permute(lanes);
  }
  const digest = new DataView(new ArrayBuffer(32));
  for (let i = 0; i < 4; i++) {
    digest.setBigUint64(8 * i, lanes[i] ?? 0n, true);
  }
  return hex(digest.buffer);
}

/** An address in any letter case, in that of EIP-55. */
export function checksummed(address: string): string {
  const digits = address.slice(2).toLowerCase();
  const hash = keccak256(new TextEncoder().encode(digits));
  return '0x' + Array.from(digits, (digit, i) => (parseInt(hash.charAt(i), 16) > 7 ? digit.toUpperCase() : digit)).join('');
}
