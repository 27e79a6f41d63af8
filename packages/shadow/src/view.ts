import type { KernelState } from "@fairlead/inspect";
import { createTracer, type Environment, type Tracer } from "@fairlead/trace";

/** What a kernel held at one time, prepared for many packets. */
export interface View {
  readonly state: KernelState;
  readonly tracer: Tracer;
  readonly environment: Environment;
}

export function viewOf(state: KernelState): View {
  const { ruleSet, nftables = [], environment } = state;
  return { state, tracer: createTracer({ iptables: ruleSet, nftables }), environment };
}
