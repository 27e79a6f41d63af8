import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { toolPackages } from "../../../../kind/versions.ts";
import { BRIDGED_IS_SEEN } from "../../../cni/bridge-plugin.ts";
import { providePrograms } from "../../../control-plane/program-set.ts";
import { applySettings } from "../../../wire/apply.ts";
import { flannel as flannelSet } from "../programs.ts";
import { applyManifest, logsOf, objectsIn, settingsOf } from "./apply-manifest.ts";
import { settled } from "./manifest.ts";
import type { KindNetwork, KindNetworkGround } from "./network.ts";
import { networkImage } from "./network-image.ts";

const manifest = fileURLToPath(new URL("../../../../kind/flannel.yaml", import.meta.url));
const PODS = { namespace: "kube-system", daemonSet: "flannel" };

/** flannel itself, as a DaemonSet; `backend`: how packets get to another node. */
export function flannel(backend: "vxlan" | "host-gw") {
  return async (ground: KindNetworkGround): Promise<KindNetwork> => {
    const { cluster, kubernetes, progress } = ground;
    const programs = await providePrograms(flannelSet, kubernetes, progress);
    const files = { "usr/local/bin/flanneld": programs.flanneld, "usr/local/bin/flannel": programs.flannel };
    const image = { name: "flannel", packages: toolPackages, root: "tools", files };
    await cluster.loadImage(await networkImage(image, progress));
    await Promise.all(cluster.nodes.map((node) => applySettings(node.runner, BRIDGED_IS_SEEN)));
    const text = (await readFile(manifest, "utf8")).replace("@BACKEND@", backend);
    await applyManifest(ground, settled(objectsIn(text), settingsOf(ground)), PODS);
    return logsOf(ground, PODS);
  };
}
