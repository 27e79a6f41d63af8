import { checkValue } from "../check.ts";
import { negation, not, singleOption } from "../options.ts";
import { Problem } from "../problem.ts";
import type { MatchKind } from "./kind.ts";

/** The order in which iptables-save prints them. */
const STATES = ["INVALID", "NEW", "RELATED", "ESTABLISHED", "UNTRACKED", "SNAT", "DNAT"] as const;

/** States of `-m conntrack --ctstate`; SNAT and DNAT stand for the entry's status bits (xt_conntrack.h). */
export type ConntrackState = (typeof STATES)[number];

export interface ConntrackMatch {
  readonly kind: "conntrack";
  /** `-m state --state`, the old name of the same question; absent: `-m conntrack --ctstate`. */
  readonly module?: "state";
  readonly negated?: boolean;
  /** Each once, in the order in which `ConntrackState` lists them. */
  readonly states: readonly ConntrackState[];
}

export const conntrack: MatchKind<ConntrackMatch> = {
  modules: ["conntrack", "state"],
  options: { "--ctstate": 1, "--state": 1 },
  parse(raw) {
    const old = raw.name === "state";
    const option = singleOption(raw, old ? "--state" : "--ctstate");
    if (option === undefined) return undefined;
    const states = canonicalStates((option.values[0] ?? "").split(","));
    return { kind: "conntrack", ...(old ? { module: "state" } : {}), ...negation(option), states };
  },
  render(match) {
    const states = checkValue("state", match.states.join(","));
    return match.module === "state"
      ? ` -m state${not(match)} --state ${states}`
      : ` -m conntrack${not(match)} --ctstate ${states}`;
  },
};

function canonicalStates(states: readonly string[]): ConntrackState[] {
  const known = STATES.filter((state) => states.includes(state));
  if (known.length !== new Set(states).size) throw new Problem(`unknown connection state in "${states.join(",")}"`);
  return known;
}
