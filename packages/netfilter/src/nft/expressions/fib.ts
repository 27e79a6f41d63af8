import type { ExpressionKind } from "./kind.ts";
import { type Register, registerNumber, registerOf } from "./registers.ts";

/** Asks the routing tables what kind of address one is: RTN_LOCAL and kin, 32 bits in the machine's byte order. */
export interface Fib {
  readonly kind: "fib";
  readonly of: "saddr" | "daddr";
  readonly to: Register;
}

const DATA = { to: 1, result: 2, flags: 3 } as const;
/** NFT_FIB_RESULT_ADDRTYPE. */
const ADDRESS_TYPE = 3;
/** NFTA_FIB_F_SADDR and NFTA_FIB_F_DADDR. */
const OF = { saddr: 1, daddr: 2 } as const;

/** RTN_* of linux/rtnetlink.h, as nft names them. */
export const ADDRESS_TYPES: Readonly<Record<string, number>> = { unicast: 1, local: 2, broadcast: 3, multicast: 5 };

export const fib: ExpressionKind<Fib> = {
  name: "fib",
  encode({ of, to }, writer) {
    writer.u32(DATA.to, registerNumber(to)).u32(DATA.result, ADDRESS_TYPE).u32(DATA.flags, OF[of]);
  },
  decode(data) {
    const to = data.u32(DATA.to);
    const flags = data.u32(DATA.flags);
    if (to === undefined || data.u32(DATA.result) !== ADDRESS_TYPE) return undefined;
    if (flags !== OF.saddr && flags !== OF.daddr) return undefined;
    return { kind: "fib", of: flags === OF.saddr ? "saddr" : "daddr", to: registerOf(to) };
  },
  print: ({ of, to }, printer) => printer.load(to, 4, { text: `fib ${of} type`, words: ADDRESS_TYPES }),
};
