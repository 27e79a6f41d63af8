import { inAnyOf, ofFamily } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import type { VirtualServer } from "@fairlead/netfilter";
import { renderServerKey } from "@fairlead/netfilter";
import type { KernelState } from "./kernel-state.ts";
import type { SetKey } from "./plan/sets.ts";

/** Whether a virtual server that no service wants is ours to delete. */
export type Owned = (server: VirtualServer) => boolean;

export interface OwnershipFacts {
  readonly family: IPFamily;
  readonly kernel: Pick<KernelState, "sets" | "addresses">;
  /** Keys of the servers that this process has made. */
  readonly made: { has(key: string): boolean };
  readonly excludeCIDRs: readonly string[];
}

/**
 * Ours is what this process made, and, outside the excluded CIDRs, what another program with our names made before it:
 * servers on addresses of the service device, and those that our sets speak of. All others belong to another program
 * (upstream deletes those too unless they are excluded).
 */
export function ownership({ family, kernel, made, excludeCIDRs }: OwnershipFacts): Owned {
  const isExcluded = inAnyOf(excludeCIDRs.filter(ofFamily(family)));
  return (server) => {
    if (server.family !== family) return false;
    if (made.has(renderServerKey(server))) return true;
    if (isExcluded(server.address)) return false;
    return kernel.addresses?.has(server.address) === true || inSets(kernel.sets, server);
  };
}

/** Nothing that stands here can be ours, so a listing would tell nothing. */
export function ownsNothing({
  kernel,
  made,
}: {
  readonly kernel: OwnershipFacts["kernel"];
  readonly made: { readonly size: number };
}): boolean {
  const { sets, addresses } = kernel;
  return (
    made.size === 0 && (addresses?.size ?? 0) === 0 && [...sets.values()].every(({ members }) => members.size === 0)
  );
}

const ADDRESS_SETS: readonly SetKey[] = [
  "KUBE-CLUSTER-IP",
  "KUBE-EXTERNAL-IP",
  "KUBE-EXTERNAL-IP-LOCAL",
  "KUBE-LOAD-BALANCER",
  "KUBE-NODE-PORT-SCTP-HASH",
];

const PORT_SETS: Readonly<Partial<Record<VirtualServer["protocol"], SetKey>>> = {
  TCP: "KUBE-NODE-PORT-TCP",
  UDP: "KUBE-NODE-PORT-UDP",
};

function inSets(sets: KernelState["sets"], { protocol, address, port }: VirtualServer): boolean {
  const member = `${address},${protocol.toLowerCase()}:${port}`;
  if (ADDRESS_SETS.some((set) => sets.get(set)?.members.has(member))) return true;
  const ports = PORT_SETS[protocol];
  return ports !== undefined && sets.get(ports)?.members.has(String(port)) === true;
}
