import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import type { Bundle } from "../sbom/bundle.ts";
import { type DebianPackage, debianPackages } from "../sbom/debian.ts";
import { fillWithAgent } from "./agent-layer.ts";
import type { Arch } from "./arch.ts";
import { DEBIAN_RELEASE, fillWithDebian } from "./debian-layer.ts";
import { type Layer, packLayer } from "./layer.ts";
import { fillWithNode, nodeVersion } from "./node-layer.ts";

export interface PlatformOptions {
  readonly arch: Arch;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly bundle: Bundle;
  readonly notices: string;
  /** An empty folder to work in, removed by the caller. */
  readonly scratch: string;
}

export interface PlatformLayers {
  /** What changes least comes first: a new agent pulls its own layer alone. */
  readonly layers: readonly Layer[];
  readonly debian: readonly DebianPackage[];
}

/** Makes the layers of one architecture. */
export async function platformLayers(runner: Runner, options: PlatformOptions): Promise<PlatformLayers> {
  const { arch, epoch, bundle, notices, scratch } = options;
  const layer = async (name: string, createdBy: string, fill: (dir: string, work: string) => Promise<void>) => {
    const dir = join(scratch, name);
    await mkdir(dir);
    await fill(dir, await mkdtemp(join(scratch, "work-")));
    return packLayer(runner, dir, join(scratch, `${name}-layer`), { epoch, createdBy });
  };
  const layers = [
    await layer("debian", `Debian ${DEBIAN_RELEASE} packages`, (dir, work) =>
      fillWithDebian(runner, dir, { arch, epoch, scratch: work }),
    ),
    await layer("node", `Node ${await nodeVersion()}`, (dir, work) => fillWithNode(runner, dir, arch, work)),
    await layer("agent", `fairlead-proxy ${bundle.agent.version}`, (dir) => fillWithAgent(dir, bundle, notices)),
  ];
  return { layers, debian: await debianPackages(join(scratch, "debian")) };
}
