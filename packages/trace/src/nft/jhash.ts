/**
 * Jenkins' hash as the kernel has it (linux/jhash.h), on a little-endian machine.
 *
 * @param seed 32 bits
 * @returns 32 bits
 */
export function jhash(bytes: Uint8Array, seed: number): number {
  const word = (at: number) => byte(at) | (byte(at + 1) << 8) | (byte(at + 2) << 16) | (byte(at + 3) << 24);
  const byte = (at: number) => bytes[at] ?? 0;
  const start = (0xdeadbeef + bytes.length + seed) | 0;
  let state: State = [start, start, start];
  const plus = ([a, b, c]: State, at: number): State => [a + word(at), b + word(at + 4), c + word(at + 8)];
  let at = 0;
  for (; bytes.length - at > 12; at += 12) state = mixed(plus(state, at));
  return bytes.length === at ? state[2] >>> 0 : final(plus(state, at));
}

const rotated = (value: number, by: number) => (value << by) | (value >>> (32 - by));

type State = readonly [a: number, b: number, c: number];

/** __jhash_mix */
function mixed(state: State): State {
  let [a, b, c] = state;
  for (const [first, second, third] of [
    [4, 6, 8],
    [16, 19, 4],
  ] as const) {
    a = ((a - c) ^ rotated(c, first)) | 0;
    c = (c + b) | 0;
    b = ((b - a) ^ rotated(a, second)) | 0;
    a = (a + c) | 0;
    c = ((c - b) ^ rotated(b, third)) | 0;
    b = (b + a) | 0;
  }
  return [a, b, c];
}

/** __jhash_final */
function final(state: State): number {
  let [a, b, c] = state;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  c = ((c ^ b) - rotated(b, 24)) | 0;
  return c >>> 0;
}
