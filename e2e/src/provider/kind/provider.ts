import { basename, dirname } from "node:path";
import { loadFlavour } from "../../../cni/load.ts";
import { missingPrograms } from "../../control-plane/program-set.ts";
import { missingControlPlane } from "../../control-plane/programs.ts";
import { isProgram, missingHere } from "../../support/machine.ts";
import { shapeOf } from "../flavours.ts";
import { missingPrograms as missingOfFlavours } from "../netns/networks.ts";
import type { ClusterRequest, Provider } from "../provider.ts";
import { openCluster } from "./cluster.ts";
import { overlayNames } from "./manifests.ts";
import { kindFlavours, misplacedNetwork } from "./networks/install.ts";
import { cluster } from "./programs.ts";

/** Kubernetes in Docker, all of it made on this machine: nodes with systemd, containerd and kubelets, and images. */
export const kind: Provider = {
  name: "kind",
  flavours: async () => kindFlavours,
  overlays: overlayNames,
  missing,
  shape,
  open: async (request, folder, progress) =>
    openCluster({
      shape: await shape(request),
      flavours: await Promise.all(request.cni.map(loadFlavour)),
      request,
      id: basename(dirname(folder)),
      folder,
      progress,
    }),
};

/** Programs, and the Debian packages that bring them. */
const needed: Readonly<Record<string, string>> = {
  dockerd: "docker.io",
  docker: "docker.io",
  runc: "runc",
  jq: "jq",
  mmdebstrap: "mmdebstrap",
  gcc: "gcc",
};

async function missing(request: ClusterRequest): Promise<readonly string[]> {
  const { kubernetes, mode, cni, families } = request;
  if (process.getuid?.() !== 0) return ["kind here takes root: it runs a Docker daemon of its own"];
  const flavours = await Promise.all(cni.map(loadFlavour));
  const programs = await Promise.all(
    Object.entries(needed).map(async ([program, debian]) =>
      (await isProgram(program)) ? undefined : `kind needs ${program}: apt-get install ${debian}`,
    ),
  );
  const others = await Promise.all([
    missingHere(),
    missingControlPlane(kubernetes),
    missingPrograms(cluster, kubernetes),
  ]);
  const modes = (await overlayNames()).includes(mode) ? [] : [`deploy/overlays has nothing for ${mode} mode`];
  const flannel = cni.some((name) => name.startsWith("flannel")) && families.includes("IPv6");
  const plugin = flannel ? ["flannel's CNI plugin that is to be had knows IPv4 alone: --ip-family ipv4"] : [];
  const ofFlavours = await missingOfFlavours(flavours, isProgram);
  return [...programs, ...others, ...ofFlavours, ...modes, ...plugin, misplacedNetwork(request)].filter(
    (one) => one !== undefined,
  );
}

async function shape(request: ClusterRequest) {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => `fairlead-worker${at === 0 ? "" : at + 1}`);
  return shapeOf("kind", request, nodeNames);
}
