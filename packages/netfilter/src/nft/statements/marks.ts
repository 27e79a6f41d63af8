import type { Expression } from "../expressions/index.ts";
import { type Hex, hostHex } from "../hex.ts";

const ZERO = hostHex(0);

/** `meta mark & 0x4000 != 0`. */
export function hasMark(bits: number): readonly Expression[] {
  return [
    { kind: "meta", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(bits), xor: ZERO },
    { kind: "cmp", operator: "!=", from: 0, value: ZERO },
  ];
}

/** `meta mark set meta mark | 0x4000`. */
export function setMark(bits: number): readonly Expression[] {
  return changeMark(hostHex(~bits >>> 0), hostHex(bits));
}

/** `meta mark set meta mark ^ 0x4000`. */
export function flipMark(bits: number): readonly Expression[] {
  return changeMark("ffffffff", hostHex(bits));
}

/** `ct mark & 0x3000 == 0x1000`. */
export function connectionMarkIs(mark: number, mask: number): readonly Expression[] {
  return [
    { kind: "ct", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(mask), xor: ZERO },
    { kind: "cmp", operator: "==", from: 0, value: hostHex(mark) },
  ];
}

/** `ct mark set ct mark & ~0x3000 | 0x1000`. */
export function setConnectionMark(mark: number, mask: number): readonly Expression[] {
  return [
    { kind: "ct", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(~mask >>> 0), xor: hostHex(mark) },
    { kind: "ct", key: "mark", from: 0 },
  ];
}

/** `meta mark set meta mark & ~0x3000 | 0x1000`. */
export function setMarkWithin(mark: number, mask: number): readonly Expression[] {
  return changeMark(hostHex(~mask >>> 0), hostHex(mark));
}

/** `meta mark set 0x4000`. */
export function replaceMark(mark: number): readonly Expression[] {
  return [
    { kind: "immediate", to: 0, value: hostHex(mark) },
    { kind: "meta", key: "mark", from: 0 },
  ];
}

function changeMark(mask: Hex, xor: Hex): readonly Expression[] {
  return [
    { kind: "meta", key: "mark", to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask, xor },
    { kind: "meta", key: "mark", from: 0 },
  ];
}
