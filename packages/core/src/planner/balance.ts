import type { ModeSemantics } from "../mode-semantics.ts";
import type { ServicePortGroup } from "../plan.ts";

/**
 * Annotation of a Service that says how its clients are spread over its endpoints: "random" (the default), or
 * "source-hash": by the client's address, the same on every node, with nothing remembered (kubernetes/kubernetes#132710
 * asks for it).
 */
const BALANCE_ANNOTATION = "fairlead.dev/balance";

const SOURCE_HASH = "source-hash";
const BALANCES: readonly string[] = ["random", SOURCE_HASH];

type Annotations = Readonly<Record<string, string>>;

/** How the mode is to balance the groups of a service; undefined: in its own way. */
export function balanceOf(annotations: Annotations, { sourceHash }: ModeSemantics): ServicePortGroup["balance"] {
  return sourceHash === true && annotations[BALANCE_ANNOTATION] === SOURCE_HASH ? SOURCE_HASH : undefined;
}

/** What is wrong with the annotation, for its service's owner. */
export function balanceProblem(annotations: Annotations, { sourceHash }: ModeSemantics): BalanceProblem | undefined {
  const value = annotations[BALANCE_ANNOTATION];
  if (value === undefined) return undefined;
  if (!BALANCES.includes(value)) {
    return { value, reason: `${BALANCE_ANNOTATION} must be ${BALANCES.join(" or ")}; using random` };
  }
  if (value !== SOURCE_HASH || sourceHash === true) return undefined;
  return { value, reason: `${BALANCE_ANNOTATION}: this mode cannot balance by the client's address; using random` };
}

interface BalanceProblem {
  readonly value: string;
  readonly reason: string;
}
