import { mkdir, mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { deployDir } from "../paths.ts";
import type { Programs } from "../sbom/bundle.ts";
import { type DebianPackage, debianPackages } from "../sbom/debian.ts";
import { fillWithPrograms } from "./agent-layer.ts";
import type { Arch } from "./arch.ts";
import { DEBIAN_RELEASE, fillWithDebian } from "./debian-layer.ts";
import { kept } from "./kept.ts";
import { type Layer, packLayer } from "./layer.ts";
import { fillWithNode, nodeVersion } from "./node-layer.ts";

export interface PlatformOptions {
  readonly arch: Arch;
  /** Seconds since the epoch. */
  readonly epoch: number;
  readonly programs: Programs;
  readonly notices: string;
  /** An empty folder to work in, removed by the caller. */
  readonly scratch: string;
  /** Where layers of packages are kept from one build to the next; absent: they are made anew. */
  readonly keep?: string;
}

export interface PlatformLayers {
  /** What changes least comes first: a new agent pulls its own layer only. */
  readonly layers: readonly Layer[];
  readonly debian: readonly DebianPackage[];
}

/** Makes the layers of one architecture. */
export async function platformLayers(runner: Runner, options: PlatformOptions): Promise<PlatformLayers> {
  const { arch, epoch, programs, notices, scratch, keep } = options;
  const layer = async (name: string, createdBy: string, fill: (dir: string, work: string) => Promise<void>) => {
    const dir = join(scratch, name);
    await mkdir(dir);
    await fill(dir, await mkdtemp(join(scratch, "work-")));
    return packLayer(runner, dir, join(scratch, `${name}-layer`), { epoch, createdBy });
  };
  const packages = await readFile(join(deployDir, "image/packages.txt"), "utf8");
  const debian = await kept(keep, ["debian", DEBIAN_RELEASE, arch, packages], async () => ({
    layer: await layer("debian", `Debian ${DEBIAN_RELEASE} packages`, (dir, work) =>
      fillWithDebian(runner, dir, { arch, epoch, scratch: work }),
    ),
    packages: await debianPackages(join(scratch, "debian")),
  }));
  const version = await nodeVersion();
  const node = await kept(keep, ["node", version, arch], async () => ({
    layer: await layer("node", `Node ${version}`, (dir, work) => fillWithNode(runner, dir, arch, work)),
  }));
  const agent = await layer("agent", `fairlead-proxy ${programs.agent.app.version}`, (dir) =>
    fillWithPrograms(dir, arch, programs, notices),
  );
  return { layers: [debian.layer, node.layer, agent], debian: debian.packages };
}
