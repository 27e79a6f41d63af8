import { parseMark } from "../numbers.ts";
import { negation, not, singleOption } from "../options.ts";
import { hex } from "../words.ts";
import type { MatchKind } from "./kind.ts";

export interface MarkMatch {
  readonly kind: "mark";
  readonly negated?: boolean;
  readonly value: number;
  readonly mask: number;
}

const FULL_MASK = 0xffffffff;

export const mark: MatchKind<MarkMatch> = {
  modules: ["mark"],
  options: { "--mark": 1 },
  parse(raw) {
    const option = singleOption(raw, "--mark");
    if (option === undefined) return undefined;
    const { value, mask = FULL_MASK } = parseMark(option.values[0] ?? "");
    return { kind: "mark", ...negation(option), value, mask };
  },
  // The full mask is left out, as -m mark does.
  render: (match) =>
    ` -m mark${not(match)} --mark ${hex("mark", match.value)}${match.mask === FULL_MASK ? "" : `/${hex("mask", match.mask)}`}`,
};
