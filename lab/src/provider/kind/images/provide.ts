import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import { nodePackages, TAGS, toolPackages } from "../../../../kind/versions.ts";
import { cacheFolder, providePrograms } from "../../../control-plane/program-set.ts";
import { controlPlanePrograms } from "../../../control-plane/programs.ts";
import { kubernetesVersion } from "../../../control-plane/versions.ts";
import { isThere } from "../../../support/is-there.ts";
import type { Progress } from "../../provider.ts";
import type { ClusterImages } from "../cluster-images.ts";
import { cluster, fingerprint } from "../programs.ts";
import { buildImages } from "./component-images.ts";
import { componentImages } from "./component-list.ts";
import { debianRoot, rootFile } from "./debian-root.ts";
import { moduleFolder } from "./module-folder.ts";
import { buildNodeImage, nodeFiles } from "./node-image.ts";
import { buildPause } from "./pause.ts";

/** By which Docker knows the node image. */
const NODE = "fairlead-e2e/node:built";
const nodeSettings = ['ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]', "ENV container=docker"].map(
  (line) => `--change=${line}`,
);

/**
 * Finds all of it in the cache, and makes what is absent: many minutes once.
 *
 * @throws Error that says what could not be made
 */
export async function provideImages(runner: Runner, kubernetes: string, progress: Progress): Promise<ClusterImages> {
  const version = kubernetesVersion(kubernetes);
  const programs = {
    ...(await controlPlanePrograms(kubernetes, progress)),
    ...(await providePrograms(cluster, kubernetes, progress)),
  };
  const folder = cacheFolder(`kind-images-${version}-${await contents()}`);
  const components = join(folder, "components");
  await mkdir(components, { recursive: true });
  const make = async (file: string, what: string, build: () => Promise<void>) => {
    if (await isThere(file)) return;
    progress(`making ${what} (once)`);
    await build();
  };
  const root = rootFile("node", nodePackages);
  const toolsRoot = rootFile("tools", toolPackages);
  const pause = join(folder, "pause");
  await make(root, "a root file system for nodes", () => debianRoot(runner, nodePackages, root));
  await make(toolsRoot, "a root file system for pods", () => debianRoot(runner, toolPackages, toolsRoot));
  await make(pause, "pause", () => buildPause(runner, pause));
  const archive = join(components, "components.tar");
  await make(archive, "the images of the control plane and of test pods", async () => {
    const sources = { kubernetes: version, programs, pause, moduleFolder: await moduleFolder(runner, version) };
    await buildImages(runner, componentImages(sources), toolsRoot, archive);
  });
  const node = join(folder, "node.tar");
  await make(node, "the node image", () => buildNodeImage(runner, { kubernetes: version, programs, root }, node));
  return {
    programs,
    node: { name: NODE, taken: ["import", ...nodeSettings, node, NODE] },
    // Nodes take in what is there as they start.
    mounts: [{ hostPath: components, containerPath: "/kind/images", readOnly: true }],
    archives: [],
  };
}

/** Of the files that are a part of images. */
async function contents(): Promise<string> {
  const entries = await readdir(nodeFiles, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(paths.sort().map((path) => readFile(path, "utf8")));
  return fingerprint([TAGS, cluster.programs, nodePackages, toolPackages, texts]);
}
