import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type ControlPlane, startControlPlane } from "../../control-plane/control-plane.ts";
import { controlPlanePrograms } from "../../control-plane/programs.ts";
import type { ClusterRequest, Progress } from "../provider.ts";
import { SERVICE_CIDRS } from "./addresses.ts";

export interface ControlPlanePlace {
  readonly namespace: NetworkNamespace;
  /** Where the API server listens; the first of the request's families counts. */
  readonly addresses: Readonly<Record<IPFamily, string>>;
  /** Of the cluster. */
  readonly folder: string;
}

/** The control plane of a cluster of namespaces: builds its programs if need be, and starts it. */
export async function openControlPlane(
  { families, kubernetes }: Pick<ClusterRequest, "families" | "kubernetes">,
  { namespace, addresses, folder }: ControlPlanePlace,
  progress: Progress,
): Promise<ControlPlane> {
  const programs = await controlPlanePrograms(kubernetes, progress);
  const own = join(folder, "control-plane");
  await mkdir(own, { recursive: true });
  return startControlPlane({
    programs,
    namespace,
    address: addresses[families[0] ?? "IPv4"],
    serviceCIDRs: families.map((family) => SERVICE_CIDRS[family]),
    folder: own,
  });
}
