import type { RunOptions } from "@fairlead/kernel";
import { parseAllDocuments } from "yaml";
import { PORT } from "../../../control-plane/control-plane.ts";
import type { NetworkObject, NetworkSettings } from "./manifest.ts";
import type { KindNetwork, KindNetworkGround } from "./network.ts";

export const READY: RunOptions = { timeoutMs: 320_000 };
const PATIENCE = "--timeout=300s";

export function settingsOf({ cluster, flavor, families, configFolder }: KindNetworkGround): NetworkSettings {
  const host = Object.values(cluster.controlPlane.addresses)[0] ?? "";
  return { podCIDRs: flavor.podCIDRs, families, configFolder, apiServer: { host, port: PORT } };
}

/** Empty documents are left out. */
export function objectsIn(text: string): readonly NetworkObject[] {
  const objects = parseAllDocuments(text).map((one): NetworkObject | null => one.toJS());
  return objects.filter((one) => one !== null);
}

/** The pods that tell of a network. */
interface NetworkPods {
  readonly namespace: string;
  readonly daemonSet: string;
}

/** Resolves when the DaemonSet runs on every node. */
export async function applyManifest(
  { cluster }: KindNetworkGround,
  objects: readonly NetworkObject[],
  { namespace, daemonSet }: NetworkPods,
): Promise<void> {
  const input = objects.map((one) => JSON.stringify(one)).join("\n---\n");
  // Definitions of resources are too large for the annotation of an apply by the client.
  await cluster.kubectl(["apply", "--server-side", "-f", "-"], { input });
  await cluster.kubectl(["-n", namespace, "rollout", "status", `daemonset/${daemonSet}`, PATIENCE], READY);
}

export function logsOf({ cluster }: KindNetworkGround, { namespace, daemonSet }: NetworkPods): KindNetwork {
  return {
    state: async () => {
      const { stdout } = await cluster.kubectl(["-n", namespace, "logs", `daemonset/${daemonSet}`, "--all-pods"]);
      return { [`${daemonSet}.log`]: stdout };
    },
  };
}
