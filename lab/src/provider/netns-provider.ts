import { BROWSER } from "@fairlead/tooling/browser-program";
import { flavorNames, loadFlavor } from "../cni/flavor.ts";
import { missingControlPlane } from "../control-plane/programs.ts";
import { modeNamed } from "../modes.ts";
import { missingPlugins } from "../secondary.ts";
import { isProgram, isThere, type Lack, lackingPrograms, lackOf, missingHere } from "../support/machine.ts";
import { lacksForUml } from "../uml/boot.ts";
import type { Ability, Cluster, ClusterShape } from "./cluster.ts";
import { openInGuest } from "./guest/open.ts";
import { lackingDevices, lackingFamilies, openCluster, programsOf } from "./netns/cluster.ts";
import { openControlPlane } from "./netns/control-plane.ts";
import { FABRIC_ADDRESS, nodeName } from "./netns/ground.ts";
import { DNS_PROGRAM } from "./netns/pods.ts";
import { type ClusterRequest, type Progress, type Provider, shapeOf } from "./provider.ts";

/** Nodes and pods as network namespaces of this machine, with a real control plane and the built agent. */
export const netns: Provider = {
  name: "netns",
  flavors: flavorNames,
  lacks,
  shape,
  open,
};

async function open(request: ClusterRequest, folder: string, progress: Progress): Promise<Cluster> {
  const own = await shape(request);
  if (await needsGuest(request)) return openInGuest(request, own, folder, progress);
  return openCluster({
    shape: own,
    flavors: await Promise.all(request.cni.map(loadFlavor)),
    folder,
    progress,
    controlPlane: async ({ fabric }, opened) => {
      const place = { namespace: fabric, addresses: FABRIC_ADDRESS, folder };
      const controlPlane = await openControlPlane(request, place, progress);
      opened.defer(() => controlPlane.dispose());
      return controlPlane;
    },
  });
}

/** Where this kernel lacks what the mode needs, the cluster is in User-Mode Linux. */
async function needsGuest({ mode }: ClusterRequest): Promise<boolean> {
  return !(await modeNamed(mode).kernelHas());
}

async function lacks(request: ClusterRequest): Promise<readonly Lack[]> {
  const flavors = await Promise.all(request.cni.map(loadFlavor));
  const inGuest = await needsGuest(request);
  const parts = await Promise.all([
    inGuest ? lacksForUml() : lackOf(missingHere()),
    lackOf(missingControlPlane(request.kubernetes)),
    lackingPrograms(programsOf(flavors)),
    // A guest has its own.
    inGuest ? [] : lackingDevices(flavors),
  ]);
  return [...parts.flat(), ...lackingFamilies(flavors, request)];
}

async function shape(request: ClusterRequest): Promise<ClusterShape> {
  const nodeNames = Array.from({ length: request.nodes }, (_, at) => nodeName(at + 1));
  const common = await shapeOf("netns", request, nodeNames);
  if (await needsGuest(request)) return { ...common, ownKernel: true, abilities: IN_GUEST };
  return { ...common, abilities: await abilities() };
}

/** What specs need of the nodes there is asked over its connection; a second instance has local ports only. */
const IN_GUEST = [
  "expire-watches",
  "fill-disk",
  "learn",
  "local-instance",
  "pod-script",
] as const satisfies readonly Ability[];

async function abilities(): Promise<readonly Ability[]> {
  const faults = [
    "expire-watches",
    "step-clock",
    "fill-disk",
    "attack",
    "learn",
    "instance",
    "kubelet",
    "local-instance",
    "pod-script",
  ] as const;
  return [
    ...((await isProgram(DNS_PROGRAM)) ? ["dns" as const] : []),
    ...((await isThere(BROWSER)) ? ["browser" as const, "console" as const] : []),
    ...((await missingPlugins()) === undefined ? ["secondary-network" as const] : []),
    ...faults,
  ];
}
