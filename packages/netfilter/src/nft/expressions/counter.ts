import type { ExpressionKind } from "./kind.ts";

/** Counts the packets that come by. How many have is not a part of the rule. */
export interface Counter {
  readonly kind: "counter";
}

const DATA = { bytes: 1, packets: 2 } as const;

export const counter: ExpressionKind<Counter> = {
  name: "counter",
  encode: (_, writer) => void writer.u64(DATA.bytes, 0n).u64(DATA.packets, 0n),
  decode: () => ({ kind: "counter" }),
  print: (_, printer) => printer.say("counter packets 0 bytes 0"),
};
