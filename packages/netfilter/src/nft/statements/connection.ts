import { CT_DIRECTIONS } from "../expressions/ct.ts";
import type { Expression } from "../expressions/index.ts";
import type { NftFamily } from "../family.ts";
import { hexOf, hostHex } from "../hex.ts";
import { CT_STATES, CT_STATUSES } from "../words.ts";
import { ADDRESSES } from "./packet.ts";

const ZERO = hostHex(0);

/** `ct state new`. */
export const newConnection: readonly Expression[] = anyBit("state", CT_STATES["new"] ?? 0);
/** `ct status dnat`. */
export const translatedConnection: readonly Expression[] = anyBit("status", CT_STATUSES["dnat"] ?? 0);
/** `ct state established`. */
export const establishedConnection: readonly Expression[] = anyBit("state", CT_STATES["established"] ?? 0);

/** `ct original ip daddr @set`: where the connection's first packet went to. */
export function originallyTo(family: NftFamily, set: string): readonly Expression[] {
  return [originalAddress(family, "daddr"), { kind: "lookup", set, from: 0 }];
}

/** `ct original ip saddr @set`: who sent it. */
export function originallyFrom(family: NftFamily, set: string): readonly Expression[] {
  return [originalAddress(family, "saddr"), { kind: "lookup", set, from: 0 }];
}

/**
 * `meta l4proto . ct original proto-dst @set`, with `ct original ip daddr` before them where `withAddress`: the service
 * that the connection's first packet was sent to.
 */
export function originalService(family: NftFamily, set: string, withAddress: boolean): readonly Expression[] {
  const from = withAddress ? ADDRESSES[family].length / 4 : 0;
  return [
    ...(withAddress ? [originalAddress(family, "daddr")] : []),
    { kind: "meta", key: "l4proto", to: from },
    { kind: "ct", key: "proto-dst", direction: "original", to: from + 1 },
    { kind: "lookup", set, from: 0 },
  ];
}

function originalAddress(family: NftFamily, field: "saddr" | "daddr"): Expression {
  return { kind: "ct", key: `${family} ${field}`, direction: "original", to: 0 };
}

/** `ct state invalid`. */
export const invalidPacket: readonly Expression[] = anyBit("state", CT_STATES["invalid"] ?? 0);

function anyBit(key: "state" | "status", bits: number): readonly Expression[] {
  return [
    { kind: "ct", key, to: 0 },
    { kind: "bitwise", from: 0, to: 0, mask: hostHex(bits), xor: ZERO },
    { kind: "cmp", operator: "!=", from: 0, value: ZERO },
  ];
}

/** `ct direction reply`. */
export const answer: readonly Expression[] = directionIs("reply");
/** `ct direction original`: the packet comes from where the connection's first one came. */
export const originalDirection: readonly Expression[] = directionIs("original");

function directionIs(direction: keyof typeof CT_DIRECTIONS): readonly Expression[] {
  return [
    { kind: "ct", key: "direction", to: 0 },
    { kind: "cmp", operator: "==", from: 0, value: hexOf([CT_DIRECTIONS[direction]]) },
  ];
}
