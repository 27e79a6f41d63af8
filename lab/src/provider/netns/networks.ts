import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { CniFlavor, PodNetwork } from "../../cni/flavor.ts";
import type { Lack, NeededProgram } from "../../support/lack.ts";
import { daemonsHere, installFlavor } from "../install-flavor.ts";
import type { ClusterRequest } from "../provider.ts";
import type { Ground } from "./ground.ts";

/** Sets the pod networks up side by side, and waits until each one works. */
export async function installNetworks(
  flavors: readonly CniFlavor[],
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, PodNetwork>> {
  const installed = await Promise.all(
    flavors.map(
      async (flavor) => [flavor.name, await install(flavor, ground, join(folder, flavor.name), opened)] as const,
    ),
  );
  return new Map(installed);
}

async function install(
  flavor: CniFlavor,
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<PodNetwork> {
  await mkdir(folder, { recursive: true });
  const { nodes, families } = ground;
  return installFlavor(flavor, { nodes, families, folder, daemon: daemonsHere(folder, opened) }, opened);
}

/** Programs that the flavors of a request run. */
export function programsOf(flavors: readonly CniFlavor[]): readonly NeededProgram[] {
  return flavors.flatMap(({ name, programs }) => programs.map((one) => ({ by: name, ...one })));
}

/** Devices that the flavors of a request open and this user may not. */
export async function lackingDevices(flavors: readonly CniFlavor[]): Promise<readonly Lack[]> {
  const needed = flavors.flatMap(({ name, devices = [] }) => devices.map((device) => ({ name, device })));
  const lacking = await Promise.all(
    needed.map(({ name, device }) =>
      access(device, constants.R_OK | constants.W_OK).then(
        () => undefined,
        () => ({ what: `${name} needs ${device}, which this user may not open` }),
      ),
    ),
  );
  return lacking.filter((one) => one !== undefined);
}

/** Families that the request names and a flavor cannot have. */
export function lackingFamilies(flavors: readonly CniFlavor[], { families }: ClusterRequest): readonly Lack[] {
  return flavors.flatMap(({ name, podCIDRs }) =>
    families.filter((family) => podCIDRs[family] === undefined).map((family) => ({ what: `${name} has no ${family}` })),
  );
}
