import { checkValue } from "../check.ts";
import { typedOptions } from "../options.ts";
import { Problem } from "../problem.ts";
import type { TargetKind } from "./kind.ts";

export interface DnatTarget {
  readonly kind: "dnat";
  readonly to: string;
  readonly random?: boolean;
  readonly persistent?: boolean;
}

export const dnat: TargetKind<DnatTarget> = {
  name: "DNAT",
  options: { "--to-destination": 1, "--random": 0, "--persistent": 0 },
  parse(raw) {
    const options = typedOptions(raw, ["--to-destination", "--random", "--persistent"]);
    if (options === undefined) return undefined;
    const to = options.get("--to-destination")?.values[0];
    if (to === undefined) throw new Problem("-j DNAT needs --to-destination");
    return {
      kind: "dnat",
      to,
      ...(options.has("--random") ? { random: true } : {}),
      ...(options.has("--persistent") ? { persistent: true } : {}),
    };
  },
  render: ({ to, random, persistent }) =>
    ` --to-destination ${checkValue("destination", to)}${random === true ? " --random" : ""}${persistent === true ? " --persistent" : ""}`,
};
