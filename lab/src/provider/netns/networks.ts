import { access, constants, mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { CniFlavour, PodNetwork } from "../../cni/flavour.ts";
import type { Lack, NeededProgram } from "../../support/lack.ts";
import { daemonsHere, installFlavour } from "../install-flavour.ts";
import type { ClusterRequest } from "../provider.ts";
import type { Ground } from "./ground.ts";

/** Sets the pod networks up side by side, and waits until each one works. */
export async function installNetworks(
  flavours: readonly CniFlavour[],
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<ReadonlyMap<string, PodNetwork>> {
  const installed = await Promise.all(
    flavours.map(
      async (flavour) => [flavour.name, await install(flavour, ground, join(folder, flavour.name), opened)] as const,
    ),
  );
  return new Map(installed);
}

async function install(
  flavour: CniFlavour,
  ground: Ground,
  folder: string,
  opened: AsyncDisposableStack,
): Promise<PodNetwork> {
  await mkdir(folder, { recursive: true });
  const { nodes, families } = ground;
  return installFlavour(flavour, { nodes, families, folder, daemon: daemonsHere(folder, opened) }, opened);
}

/** Programs that the flavours of a request run. */
export function programsOf(flavours: readonly CniFlavour[]): readonly NeededProgram[] {
  return flavours.flatMap(({ name, programs }) => programs.map((one) => ({ by: name, ...one })));
}

/** Devices that the flavours of a request open and this user may not. */
export async function lackingDevices(flavours: readonly CniFlavour[]): Promise<readonly Lack[]> {
  const needed = flavours.flatMap(({ name, devices = [] }) => devices.map((device) => ({ name, device })));
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

/** Families that the request names and a flavour cannot have. */
export function lackingFamilies(flavours: readonly CniFlavour[], { families }: ClusterRequest): readonly Lack[] {
  return flavours.flatMap(({ name, podCIDRs }) =>
    families.filter((family) => podCIDRs[family] === undefined).map((family) => ({ what: `${name} has no ${family}` })),
  );
}
