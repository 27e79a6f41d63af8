import { checkName, checkValue } from "../check.ts";
import { negation, not, singleOption } from "../options.ts";
import { Problem } from "../problem.ts";
import type { MatchKind } from "./kind.ts";

/** Whether an ipset has what the packet has. */
export interface SetMatch {
  readonly kind: "set";
  readonly negated?: boolean;
  readonly name: string;
  readonly flags: readonly ("src" | "dst")[];
}

export const set: MatchKind<SetMatch> = {
  modules: ["set"],
  options: { "--match-set": 2 },
  parse(raw) {
    const option = singleOption(raw, "--match-set");
    if (option === undefined) return undefined;
    const [name = "", flags = ""] = option.values;
    return { kind: "set", ...negation(option), name, flags: flags.split(",").map(flagOf) };
  },
  render: (match) =>
    ` -m set${not(match)} --match-set ${checkName("set", match.name)} ${checkValue("set flags", match.flags.join(","))}`,
};

function flagOf(flag: string): "src" | "dst" {
  if (flag !== "src" && flag !== "dst") throw new Problem(`set flag "${flag}" is neither src nor dst`);
  return flag;
}
