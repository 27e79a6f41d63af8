import type { ExpressionKind } from "./kind.ts";

/** enum nft_counter_attributes. */
export const COUNTER = { bytes: 1, packets: 2 } as const;

/** Counts the packets that come by. How many have is not a part of the rule. */
export interface Counter {
  readonly kind: "counter";
}

export const counter: ExpressionKind<Counter> = {
  name: "counter",
  encode: (_, writer) => void writer.u64(COUNTER.bytes, 0n).u64(COUNTER.packets, 0n),
  decode: () => ({ kind: "counter" }),
  print: (_, printer) => printer.say("counter packets 0 bytes 0"),
};
