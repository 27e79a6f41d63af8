import type { ExpressionKind } from "./kind.ts";
import type { Register } from "./registers.ts";

/** A part of a rule that has no type here. It may do anything, a verdict included, and it can't be written. */
export interface Unknown {
  readonly kind: "unknown";
  /** As the listing has it; of what was read by netlink, the kernel's name. */
  readonly text: string;
  /**
   * none: it lets the packet on, and changes nothing that rules ask for. test: it says yes or no, and nothing else.
   * Absent: what the text says.
   */
  readonly effect?: "none" | "test";
  /** Where it leaves an unknown value. */
  readonly to?: Register;
}

/** Bytes of what may be left there: no register is longer. */
const LONGEST = 16;

export const unknown: ExpressionKind<Unknown> = {
  // No kind of the kernel's has this name.
  name: "",
  encode({ text }) {
    throw new RangeError(`"${text}" is not known here and can't be written`);
  },
  decode: () => undefined,
  print: ({ text, to }, printer) => (to === undefined ? printer.say(text) : printer.load(to, LONGEST, { text })),
};
