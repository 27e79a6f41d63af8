import type { Backend, EndpointFilter, IPFamily } from "@fairlead/core";
import type { RuleSet } from "@fairlead/netfilter";
import type { Environment, Rules } from "@fairlead/trace";
import { type ConformanceCase, packetFamily } from "../conformance/case.ts";
import type { AgentOptions } from "../conformance/options.ts";
import { PlannedCluster } from "./cluster.ts";
import { tracedWays } from "./traced.ts";
import type { OutcomeShares } from "./ways.ts";

/** A mode over a kernel that holds nothing yet. */
export interface BackendUnderTest {
  readonly backend: Backend;
  /** What the kernel holds now. */
  ruleSet(): RuleSet | Rules | Promise<RuleSet | Rules>;
  /** The node as a packet meets it, where rules are not all; default `nodeEnvironment`. */
  environment?(): Environment;
}

/** What the caller brings, so that the table knows no backend. */
export interface BackendsUnderTest {
  open(family: IPFamily, options: AgentOptions): BackendUnderTest;
  filter(options: AgentOptions): EndpointFilter;
}

/**
 * Takes a fresh kernel through the case's history, the first state as a full sync and each later one as a change, and
 * sends its packet through what the kernel then holds.
 */
export async function runCase(row: ConformanceCase, subjects: BackendsUnderTest): Promise<OutcomeShares> {
  const { options, history } = row;
  const family = packetFamily(row.packet);
  const subject = subjects.open(family, options);
  const cluster = new PlannedCluster({
    options,
    semantics: subject.backend.semantics,
    filter: subjects.filter(options),
  });
  for (const [index, state] of history.entries()) {
    const change = cluster.advance(state).changes.get(family);
    if (index === 0) await subject.backend.sync(cluster.plan(family));
    else if (change) await subject.backend.apply(cluster.plan(family), change);
  }
  return tracedWays(row, await subject.ruleSet(), subject.environment?.());
}
