import type { ExpressionKind } from "./kind.ts";

/** Translates the source to the address of the interface that the packet leaves by. */
export interface Masq {
  readonly kind: "masq";
  readonly fullyRandom: boolean;
}

const DATA = { flags: 1 } as const;
/** NF_NAT_RANGE_PROTO_RANDOM_FULLY. */
const FULLY_RANDOM = 0x10;

export const masq: ExpressionKind<Masq> = {
  name: "masq",
  encode({ fullyRandom }, writer) {
    if (fullyRandom) writer.u32(DATA.flags, FULLY_RANDOM);
  },
  decode(data) {
    const flags = data.u32(DATA.flags) ?? 0;
    return (flags & ~FULLY_RANDOM) === 0 ? { kind: "masq", fullyRandom: flags === FULLY_RANDOM } : undefined;
  },
  print: ({ fullyRandom }, printer) => printer.say(fullyRandom ? "masquerade fully-random" : "masquerade"),
};
