import type { IPFamily } from "@fairlead/core";
import type { SetCommand } from "@fairlead/netfilter";
import type { Moves } from "./ledger.ts";
import { SET_KEYS, type SetKey, setName } from "./sets.ts";

/** What a step does to the sets before the virtual servers change, and after. */
export interface SetWork {
  readonly first: readonly SetCommand[];
  readonly last: readonly SetCommand[];
}

/**
 * Members of these sets take something away from those of the others: their clients are not masqueraded. While a
 * frontend stays and only its policy changes, that must not hold before the destinations on other nodes are gone, which
 * would answer past this node.
 */
const EXCEPTIONS: ReadonlyMap<SetKey, SetKey> = new Map([
  ["KUBE-NODE-PORT-LOCAL-TCP", "KUBE-NODE-PORT-TCP"],
  ["KUBE-NODE-PORT-LOCAL-UDP", "KUBE-NODE-PORT-UDP"],
  ["KUBE-NODE-PORT-LOCAL-SCTP-HASH", "KUBE-NODE-PORT-SCTP-HASH"],
  ["KUBE-LOAD-BALANCER-LOCAL", "KUBE-LOAD-BALANCER"],
]);

/** In the order of `SET_KEYS` what comes, backwards what goes: every beginning of it serves. */
export function setWork(moves: ReadonlyMap<SetKey, Moves>, family: IPFamily): SetWork {
  const first: SetCommand[] = [];
  const last: SetCommand[] = [];
  for (const key of SET_KEYS) {
    for (const member of moves.get(key)?.added ?? []) {
      const late = isException(key, member, moves, "added");
      (late ? last : first).push({ kind: "add", set: setName(key, family), member });
    }
  }
  for (const key of SET_KEYS.toReversed()) {
    for (const member of moves.get(key)?.removed ?? []) {
      const early = isException(key, member, moves, "removed");
      (early ? first : last).push({ kind: "del", set: setName(key, family), member });
    }
  }
  return { first, last };
}

/** The member comes or goes without the frontend itself. */
function isException(key: SetKey, member: string, moves: ReadonlyMap<SetKey, Moves>, moved: keyof Moves): boolean {
  const rule = EXCEPTIONS.get(key);
  return rule !== undefined && moves.get(rule)?.[moved].includes(member) !== true;
}
