import { flavourNames, loadFlavour } from "../../../cni/load.ts";
import { missingControlPlane } from "../../control-plane/programs.ts";
import { hasIpvs, isProgram, missingHere } from "../../support/machine.ts";
import { missingForUml } from "../../uml/missing.ts";
import type { Ability, Cluster, ClusterShape } from "../cluster.ts";
import { shapeOf } from "../flavours.ts";
import { openInGuest } from "../guest/open.ts";
import type { ClusterRequest, Progress, Provider } from "../provider.ts";
import { fabricAddress, nodeName } from "./addresses.ts";
import { openCluster } from "./cluster.ts";
import { openControlPlane } from "./control-plane.ts";
import { DNS_PROGRAM } from "./dns-server.ts";
import { missingDevices, missingFamilies, missingPrograms } from "./networks.ts";

/** Nodes and pods as network namespaces of this machine, with a real control plane and the built agent. */
export const netns: Provider = {
  name: "netns",
  flavours: flavourNames,
  missing,
  shape,
  open,
};

async function open(request: ClusterRequest, folder: string, progress: Progress): Promise<Cluster> {
  const own = await shape(request);
  if (await needsGuest(request)) return openInGuest(request, own, folder, progress);
  return openCluster({
    shape: own,
    flavours: await Promise.all(request.cni.map(loadFlavour)),
    folder,
    progress,
    controlPlane: async ({ fabric }, opened) => {
      const place = { namespace: fabric, addresses: fabricAddress, folder };
      const controlPlane = await openControlPlane(request, place, progress);
      opened.defer(() => controlPlane.dispose());
      return controlPlane;
    },
  });
}

/** Ipvs mode where the kernel has no IPVS: the cluster is in User-Mode Linux. */
async function needsGuest({ mode }: ClusterRequest): Promise<boolean> {
  return mode === "ipvs" && !(await hasIpvs());
}

async function missing(request: ClusterRequest): Promise<readonly string[]> {
  const flavours = await Promise.all(request.cni.map(loadFlavour));
  const inGuest = await needsGuest(request);
  const [kernel, controlPlane, programs, devices] = await Promise.all([
    inGuest ? missingForUml() : missingHere(),
    missingControlPlane(request.kubernetes),
    missingPrograms(flavours, isProgram),
    // A guest has its own.
    inGuest ? [] : missingDevices(flavours),
  ]);
  const families = missingFamilies(flavours, request);
  return [kernel, controlPlane, ...programs, ...devices, ...families].filter((one) => one !== undefined);
}

async function shape(request: ClusterRequest): Promise<ClusterShape> {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => nodeName(at + 1));
  const common = await shapeOf("netns", request, nodeNames);
  if (await needsGuest(request)) return { ...common, ownKernel: true };
  return { ...common, abilities: await abilities() };
}

async function abilities(): Promise<readonly Ability[]> {
  const faults = ["expire-watches", "step-clock", "fill-disk"] as const;
  return (await isProgram(DNS_PROGRAM)) ? ["dns", ...faults] : faults;
}
