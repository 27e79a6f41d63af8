import type { Expression } from "../expressions/index.ts";
import { PORT_UNREACHABLE } from "../expressions/reject.ts";
import type { Verdict } from "../expressions/verdict.ts";
import type { NftFamily } from "../family.ts";
import { addressHex, portHex } from "../hex.ts";
import { ADDRESSES } from "./packet.ts";

/** `dnat to 10.0.0.1:80`. */
export function dnatTo(family: NftFamily, address: string, port: number): readonly Expression[] {
  const behind = ADDRESSES[family].length / 4;
  return [
    { kind: "immediate", to: 0, value: addressHex(address) },
    { kind: "immediate", to: behind, value: portHex(port) },
    { kind: "nat", family, address: 0, port: behind },
  ];
}

/** Ends the rule with a verdict. */
export function verdict(of: Verdict): readonly Expression[] {
  return [{ kind: "immediate", verdict: of }];
}

/** Goes to a chain and comes back at its end. */
export const jump = (chain: string): readonly Expression[] => verdict({ kind: "jump", chain });
/** Goes to a chain for good. */
export const goTo = (chain: string): readonly Expression[] => verdict({ kind: "goto", chain });

/** `reject`: ICMP's "port unreachable". */
export function rejectPacket(family: NftFamily): readonly Expression[] {
  return [{ kind: "reject", with: "port-unreachable", code: PORT_UNREACHABLE[family] }];
}

/** `reject with tcp reset`. */
export const RESET: readonly Expression[] = [{ kind: "reject", with: "tcp-reset", code: 0 }];

/** `masquerade fully-random`. */
export const MASQUERADE: readonly Expression[] = [{ kind: "masq", fullyRandom: true }];
