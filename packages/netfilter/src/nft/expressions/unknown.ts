import type { ExpressionKind } from "./kind.ts";

/**
 * A part of a rule that was read from a listing and has no type here. It may do anything, a verdict included, and it
 * can't be written.
 */
export interface Unknown {
  readonly kind: "unknown";
  /** As the listing has it. */
  readonly text: string;
}

export const unknown: ExpressionKind<Unknown> = {
  // No kind of the kernel's has this name.
  name: "",
  encode({ text }) {
    throw new RangeError(`"${text}" is not known here and can't be written`);
  },
  decode: () => undefined,
  print: ({ text }, printer) => printer.say(text),
};
