import type { ConformanceCase } from "./case.ts";
import { type Outcome, REJECT, type Skip } from "./expected.ts";

/**
 * What becomes of a row's packet in userspace mode: the same as in iptables mode, but that every endpoint sees the
 * node, which asks in the client's place, and that SCTP cannot be relayed and is refused.
 */
export function userspaceExpected({ expected: { iptables }, packet }: ConformanceCase): Outcome | Skip {
  if ("skip" in iptables || iptables.verdict !== "endpoints") return iptables;
  if (packet.protocol === "SCTP") return REJECT;
  return { verdict: "endpoints", landings: iptables.landings.map((landing) => ({ ...landing, masqueraded: true })) };
}
