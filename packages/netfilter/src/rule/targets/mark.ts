import { parseMark } from "../numbers.ts";
import { Problem } from "../problem.ts";
import { hex } from "../words.ts";
import type { TargetKind } from "./kind.ts";

/** `MARK --set-xmark value/mask`: mark = (mark & ~mask) ^ value. */
export interface MarkTarget {
  readonly kind: "mark";
  readonly value: number;
  readonly mask: number;
}

const FULL_MASK = 0xffffffff;

/** Every way to set a mark is one of `mark = (mark & ~mask) ^ value` (xt_MARK). */
export const setMark: TargetKind<MarkTarget> = {
  name: "MARK",
  options: { "--set-xmark": 1, "--set-mark": 1, "--or-mark": 1, "--and-mark": 1, "--xor-mark": 1 },
  parse(raw) {
    const [option, ...more] = raw.options;
    if (option === undefined) throw new Problem("-j MARK needs an option");
    if (more.length > 0) throw new Problem("-j MARK takes one option");
    const { value, mask } = parseMark(option.values[0] ?? "");
    switch (option.name) {
      case "--set-xmark":
        return { kind: "mark", value, mask: mask ?? FULL_MASK };
      case "--set-mark":
        return { kind: "mark", value, mask: mask === undefined ? FULL_MASK : (mask | value) >>> 0 };
      case "--or-mark":
        return { kind: "mark", value, mask: value };
      case "--and-mark":
        return { kind: "mark", value: 0, mask: ~value >>> 0 };
      case "--xor-mark":
        return { kind: "mark", value, mask: 0 };
      default:
        return undefined;
    }
  },
  render: ({ value, mask }) => ` --set-xmark ${hex("mark", value)}/${hex("mask", mask)}`,
};
