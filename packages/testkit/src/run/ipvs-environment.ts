import type { SetState, VirtualServerState } from "@fairlead/netfilter";
import { type Environment, packetSet } from "@fairlead/trace";
import { nodeEnvironment } from "./traced.ts";

/** What ipvs mode has in the kernel alongside rules. */
export interface IpvsState {
  readonly servers: readonly VirtualServerState[];
  readonly sets: readonly SetState[];
  /** On kube-ipvs0. */
  readonly addresses: Iterable<string>;
}

/** Node-a in ipvs mode, with the kernel settings that the mode makes. */
export function ipvsEnvironment({ servers, sets, addresses }: IpvsState): Environment {
  return {
    ...nodeEnvironment,
    localAddresses: [...(nodeEnvironment.localAddresses ?? []), ...addresses],
    sets: new Map(sets.map(({ name, type, members }) => [name, packetSet(type, members)])),
    ipvs: { servers, conntrack: true, expireQuiescentTemplate: true },
  };
}
