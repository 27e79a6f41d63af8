import type { NftSet } from "@fairlead/netfilter/nft";
import { kubeProxyAffinitySet } from "../names.ts";
import type { Placement } from "../placement.ts";
import { endpointsOf, type Known, stickyOf } from "./known.ts";

/** kube-proxy has a set of clients for each endpoint of a service port. */
const NAME = /^affinity-.*\//;

export function isKubeProxys(name: string): boolean {
  return NAME.test(name);
}

/** Clients as kube-proxy has remembered them. */
export function* kubeProxyClients(
  sets: ReadonlyMap<string, NftSet>,
  placements: ReadonlyMap<string, Placement>,
): Generator<Known | undefined> {
  if (![...sets.keys()].some(isKubeProxys)) return;
  for (const sticky of stickyOf(placements.values())) {
    const { name, protocol } = sticky.placement.group;
    for (const [endpoint, number] of endpointsOf(sticky)) {
      yield undefined;
      const clients = sets.get(kubeProxyAffinitySet(name, protocol, endpoint))?.elements.values() ?? [];
      for (const { key: client, expires = 0 } of clients) yield { ...sticky, client, endpoint: number, expires };
    }
  }
}
