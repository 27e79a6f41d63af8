import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { IPFamily } from "@fairlead/core";
import { createRunner } from "@fairlead/kernel";
import type { CniFlavor, PodNetwork } from "../../../cni/flavor.ts";
import type { ApiClient } from "../../../control-plane/api-client.ts";
import { cacheFolder } from "../../../control-plane/programs.ts";
import { isThere } from "../../../support/machine.ts";
import type { Progress } from "../../provider.ts";
import { buildImages } from "../component-images.ts";
import type { KindCluster } from "../kind-cluster.ts";
import type { Machine } from "../machine.ts";
import { debianRoot, rootFile } from "../node-image.ts";
import { fingerprint } from "../programs.ts";

/** What a pod network is given to set itself up with. */
export interface KindNetworkGround {
  readonly cluster: KindCluster;
  readonly flavor: CniFlavor;
  readonly families: readonly IPFamily[];
  readonly kubernetes: string;
  readonly machine: Machine;
  readonly api: ApiClient;
  /** A folder of its own on this machine. */
  readonly folder: string;
  /** The same folder on every node. */
  readonly nodeFolder: string;
  /** `/etc/cni/net.d` for the network of every pod that does not say; else a folder that its runtime class names. */
  readonly configFolder: string;
  readonly progress: Progress;
}

/** A pod network that works. */
export type KindNetwork = Pick<PodNetwork, "state" | "followServices">;

/** Writes a CNI configuration on a node. */
export async function writeConfig(
  node: KindCluster["controlPlane"],
  folder: string,
  name: string,
  config: unknown,
): Promise<void> {
  const file = `${folder}/10-${name}.conflist`;
  await node.exec(["sh", "-c", 'mkdir -p "$(dirname "$1")" && cat >"$1.part" && mv "$1.part" "$1"', "sh", file], {
    input: JSON.stringify(config),
  });
}

export const HOST_PORTS = { type: "portmap", capabilities: { portMappings: true } } as const;

/** An image of Debian packages, made here. */
interface NetworkImage {
  /** Of the image, and a part of the names of files that are kept. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Paths in the image → programs of this machine. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of the packages' root file system, when another image has the same; default: `name`. */
  readonly root?: string;
}

/** As manifests name it. */
export function imageName({ name }: Pick<NetworkImage, "name">): string {
  return `localhost/${name}:made-here`;
}

/** @returns the archive, as it is kept by what it is made of */
export async function networkImage(image: NetworkImage, progress: Progress): Promise<string> {
  const { name, packages, files = {}, root = name } = image;
  const folder = cacheFolder("kind-networks");
  const file = join(folder, `${name}-${fingerprint([packages, files])}.tar`);
  if (await isThere(file)) return file;
  progress(`making the image of ${name} (once)`);
  await mkdir(folder, { recursive: true });
  const runner = createRunner();
  const tar = rootFile(root, packages);
  await debianRoot(runner, packages, tar);
  await buildImages(runner, [{ names: [imageName(image)], parts: ["tools", files] }], tar, file);
  return file;
}
