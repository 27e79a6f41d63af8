import { checkValue } from "../check.ts";
import { negation, not } from "../options.ts";
import type { MatchKind } from "./kind.ts";

/** `--physdev-is-in` and its kin: whether the packet came in, goes out, or both by a bridge's port. */
export interface PhysdevMatch {
  readonly kind: "physdev";
  readonly negated?: boolean;
  readonly is: "in" | "out" | "bridged";
}

export const physdev: MatchKind<PhysdevMatch> = {
  modules: ["physdev"],
  options: {
    "--physdev-is-in": 0,
    "--physdev-is-out": 0,
    "--physdev-is-bridged": 0,
    "--physdev-in": 1,
    "--physdev-out": 1,
  },
  parse(raw) {
    const [option, ...more] = raw.options;
    const is = (["in", "out", "bridged"] as const).find((fact) => option?.name === `--physdev-is-${fact}`);
    if (option === undefined || is === undefined || more.length > 0) return undefined;
    return { kind: "physdev", ...negation(option), is };
  },
  render: (match) => ` -m physdev${not(match)} --physdev-is-${checkValue("physdev", match.is)}`,
};
