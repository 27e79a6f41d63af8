import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { createRunner } from "@fairlead/kernel";
import { loadFlavor } from "../../cni/flavor.ts";
import { createApiClient } from "../../control-plane/api-client.ts";
import type { ControlPlane } from "../../control-plane/control-plane.ts";
import { applyLines, applySettings, kernelSettings, runnerIn } from "../../wire.ts";
import type { Cluster } from "../cluster.ts";
import { openCluster, type ReachControlPlane } from "../netns/cluster.ts";
import { shareOver } from "./remote.ts";
import { fabricEndLines, fabricPair, type GuestCluster, type GuestSettings, guestLines } from "./wire.ts";

/**
 * Runs in the guest: a cluster of namespaces whose control plane is outside, for the machine's side to work with. Ends
 * when that side closes the connection. Usage: main.ts SETTINGS-FILE FOLDER
 */
const [, , settingsFile = "", folder = ""] = process.argv;
const settings: GuestSettings = JSON.parse(await readFile(settingsFile, "utf8"));
const runner = createRunner();
await applySettings(runner, kernelSettings("fabric"));
await applyLines(runner, guestLines);

const machine = connect(settings.port, settings.host);
await new Promise((resolve, reject) => machine.on("connect", resolve).on("error", reject));
const ended = new Promise((resolve) => machine.on("close", resolve));

const progress = shareOver(machine, async () =>
  shared(
    await openCluster({
      shape: settings.shape,
      flavors: await Promise.all(settings.request.cni.map(loadFlavor)),
      folder,
      progress: (line) => progress(line),
      controlPlane: reachControlPlane,
    }),
  ),
);
await ended;
process.exit(0);

async function reachControlPlane(...[{ fabric }, opened]: Parameters<ReachControlPlane>): Promise<ControlPlane> {
  await applyLines(runner, fabricPair(fabric.pid));
  await applyLines(runnerIn(fabric), fabricEndLines);
  const { host, port, ca, url, token } = settings.apiServer;
  const api = createApiClient({ at: { host, port }, ca, token });
  opened.defer(async () => api.close());
  const elsewhere = async () => {
    throw new Error("the control plane is not in the guest");
  };
  return {
    api,
    url,
    token,
    ca,
    proxyKubeconfig: settings.proxyKubeconfig,
    adminKubeconfig: settings.adminKubeconfig,
    stopApiServer: elsewhere,
    startApiServer: elsewhere,
    dispose: async () => {},
  };
}

/** Without what is of use only on the machine that the nodes are on. */
function shared({ nodes, outside: { name, addresses, send }, startPod, state }: Cluster): GuestCluster {
  return {
    nodes: nodes.map(({ namespaceFile: _, ...node }) => node),
    outside: { name, addresses, send },
    startPod,
    state,
  };
}
