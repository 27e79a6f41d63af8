import type { Client } from "../../provider/cluster.ts";
import type { Scene } from "../scene.ts";

/** What endpoints see of a pod that calls a ClusterIP: its own address, or in some networks anything but that. */
export function sourceOf({ network, family }: Scene, caller: Client): { seen: string } | { notSeen: string } {
  const own = caller.addresses[family] ?? "";
  return network.hidesCallers ? { notSeen: own } : { seen: own };
}
