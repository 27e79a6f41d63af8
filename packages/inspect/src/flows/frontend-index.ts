import { familyOf, IP_FAMILIES } from "@fairlead/base";
import {
  type FrontendKind,
  frontendSpecs,
  type IPFamily,
  nodePortChoice,
  type Protocol,
  type ServiceKey,
  type ServicePortSpec,
} from "@fairlead/core";
import type { PlannedNode } from "../node-plan.ts";

/** Whom a client called. */
interface CalledFrontend {
  readonly service: ServiceKey;
  readonly port: ServicePortSpec;
  readonly kind: FrontendKind;
}

/** Finds what a client called; undefined: no service has that address and port. */
export type FindFrontend = (protocol: Protocol, address: string, port: number) => CalledFrontend | undefined;

/**
 * All frontends of a planned cluster, those of other networks among them. Where several services claim one, it is the
 * one's that the plan gives it to.
 *
 * @param nodeAddresses where node ports are served; absent: everywhere
 */
export function frontendIndex(planned: PlannedNode, nodeAddresses?: { has(address: string): boolean }): FindFrontend {
  const { planner } = planned;
  const addressed = new Map<string, CalledFrontend[]>();
  const nodePorts = new Map<string, CalledFrontend[]>();
  for (const called of calledFrontends(planned, IP_FAMILIES)) {
    const { address, found, family, port } = called;
    const { protocol } = found.port;
    if (address === undefined) add(nodePorts, `${family} ${protocol} ${port}`, found);
    else add(addressed, `${protocol} ${address} ${port}`, found);
  }
  return (protocol, address, port) => {
    const family = familyOf(address);
    const lookup = planner.lookup(family);
    const here = addressed.get(`${protocol} ${address} ${port}`);
    if (here !== undefined) return heldBy(here, lookup.at(protocol, address, port)?.service);
    if (nodeAddresses?.has(address) === false) return undefined;
    const behind = nodePorts.get(`${family} ${protocol} ${port}`);
    return behind && heldBy(behind, lookup.atNodePort(protocol, port)?.service);
  };
}

function* calledFrontends({ state, options }: PlannedNode, families: readonly IPFamily[]) {
  for (const key of state.keys()) {
    const service = state.service(key);
    if (service === undefined) continue;
    for (const family of families) {
      // A family that the service has no ClusterIP of is none of its.
      if (!service.clusterIPs.some((address) => familyOf(address) === family)) continue;
      const chosen = nodePortChoice(service, family, options)?.addresses;
      for (const port of service.ports) {
        for (const one of frontendSpecs(service, port, family, "nothing", undefined, chosen)) {
          const { kind, address, port: number } = one;
          yield { family, address, port: number, found: { service: key, port, kind } };
        }
      }
    }
  }
}

function add(to: Map<string, CalledFrontend[]>, key: string, found: CalledFrontend): void {
  const known = to.get(key);
  if (known === undefined) to.set(key, [found]);
  else known.push(found);
}

function heldBy(claimants: readonly CalledFrontend[], holder: ServiceKey | undefined): CalledFrontend | undefined {
  return claimants.find(({ service }) => service === holder) ?? claimants[0];
}
