import { BREAK } from "../rule-context.ts";
import { connectionState } from "./ct.ts";
import type { Evaluate } from "./kind.ts";

/**
 * As nft_flow_offload_eval. The packet itself goes on in either case; whether the rule does depends on what only the
 * kernel knows: whether the connection is in a flowtable already, has a helper, and finds a route both ways.
 */
export const flowOffload: Evaluate<"flow-offload"> = ({ flowtable }, { walk }) => {
  const mayBe = connectionState(walk) === "ESTABLISHED" && (walk.protocol === "tcp" || walk.protocol === "udp");
  if (!mayBe) return BREAK;
  return {
    kind: "open",
    problem: `the tracer cannot decide whether flowtable ${flowtable} takes the connection, whose later packets then meet no rules`,
  };
};
