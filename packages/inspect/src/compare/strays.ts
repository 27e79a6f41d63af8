import type { ForwardingPlan } from "@fairlead/core";
import type { ChainState, RuleSet } from "@fairlead/netfilter";
import { type Destination, destinationText, eachDestination } from "./states/destinations.ts";
import type { KernelState } from "./ways.ts";

/** The chains of a service proxy that packets are dispatched in, of every mode. */
const DISPATCH = ["KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-NODEPORTS", "KUBE-PROXY-FIREWALL"];

/**
 * Destinations that a kernel takes packets of and no service of the plan has: services that are gone, ports that were
 * given back. Step by step: all of the dispatch is read.
 */
export function* straysIn(plan: ForwardingPlan, state: KernelState): Generator<void, readonly Destination[], void> {
  const wanted = yield* wantedIn(plan);
  const strays = new Map<string, Destination>();
  for (const one of eachDestination({ ...state, ruleSet: dispatchOf(state.ruleSet) }, plan.family)) {
    if (!isWanted(one, wanted) && !plan.foreignClusterIPs.has(one.address ?? "")) strays.set(destinationText(one), one);
    yield;
  }
  return [...strays.values()];
}

/** ipvs mode has a virtual server for each address that a node port is served on. */
function isWanted(one: Destination, wanted: ReadonlySet<string>): boolean {
  const { protocol, port } = one;
  return wanted.has(destinationText(one)) || wanted.has(destinationText({ protocol, port }));
}

function* wantedIn({ groups, healthChecks }: ForwardingPlan): Generator<void, ReadonlySet<string>, void> {
  const wanted = new Set<string>();
  for (const { protocol: upper, frontends } of groups.values()) {
    const protocol = upper.toLowerCase();
    for (const { address, port } of frontends) {
      wanted.add(destinationText({ protocol, port, ...(address !== undefined && { address }) }));
    }
    yield;
  }
  // Let in, though nothing is translated.
  for (const { port } of healthChecks.values()) wanted.add(destinationText({ protocol: "tcp", port }));
  return wanted;
}

function dispatchOf(ruleSet: RuleSet): RuleSet {
  return new Map(
    Array.from(ruleSet, ([table, { chains }]) => {
      const found = DISPATCH.flatMap((name): (readonly [string, ChainState])[] => {
        const chain = chains.get(name);
        return chain === undefined ? [] : [[name, chain]];
      });
      return [table, { table, chains: new Map(found) }];
    }),
  );
}
