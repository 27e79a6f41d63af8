import { modeNamed } from "@fairlead/lab/modes";
import type { Client } from "@fairlead/lab/provider/cluster";
import type { Scene } from "../scene.ts";

type Source = { readonly seen: string } | { readonly notSeen: string };

/** What endpoints see of a pod that calls a ClusterIP: its own address, or in some networks anything but that. */
export function sourceOf(scene: Scene, caller: Client): Source {
  const { network, family } = scene;
  return network.hidesCallers ? { notSeen: caller.addresses[family] ?? "" } : keptSource(scene, caller);
}

/**
 * What endpoints see of a client whose address is kept, which in userspace mode can be nobody's: the node asks for all.
 */
export function keptSource({ cluster, family }: Scene, caller: Client): Source {
  const own = caller.addresses[family] ?? "";
  return modeNamed(cluster.mode).keepsSource ? { seen: own } : { notSeen: own };
}
