import { nodeImage } from "../../../../kind/published.ts";
import { providePrograms } from "../../../control-plane/program-set.ts";
import { kubernetesVersion } from "../../../control-plane/versions.ts";
import type { Progress } from "../../provider.ts";
import type { ClusterImages } from "../cluster-images.ts";
import { PAUSE_IMAGE } from "../images/component-list.ts";
import { published as publishedSet } from "../programs.ts";
import type { Source } from "../source.ts";
import { publishedInstallers } from "./networks.ts";
import { pulled } from "./pulled.ts";

/** kind's own node image, and the pod networks' own manifests. */
export const published: Source = { images, installers: publishedInstallers };

async function images(kubernetes: string, progress: Progress): Promise<ClusterImages> {
  const name = nodeImage(kubernetesVersion(kubernetes));
  const programs = await providePrograms(publishedSet, kubernetes, progress);
  return {
    programs,
    node: { name, taken: ["load", "--input", await pulled([name], progress)] },
    mounts: [{ hostPath: programs.bridge, containerPath: "/opt/cni/bin/bridge", readOnly: true }],
    containerdPatches: Object.keys(publishedInstallers).map(runtimeClassPatch),
    archives: [await pulled([PAUSE_IMAGE], progress)],
  };
}

/** Several pod networks side by side: a pod's runtime class says which configuration it is connected by. */
export function runtimeClassPatch(network: string): string {
  const table = `plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.${network}`;
  return `[${table}]\n  runtime_type = 'io.containerd.runc.v2'\n  cni_conf_dir = '/etc/cni/${network}.d'\n`;
}
