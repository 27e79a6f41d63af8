/** The image of kind's nodes, and all images of a cluster. */

import {
  chmod,
  copyFile,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { DEBIAN_RELEASE } from "@fairlead/deploy/image";
import type { Runner } from "@fairlead/kernel";
import { nodePackages, TAGS, toolPackages } from "../../../kind/versions.ts";
import {
  cacheFolder,
  controlPlanePrograms,
  type GoModule,
  kubernetesVersion,
  providePrograms,
} from "../../control-plane/programs.ts";
import { isThere } from "../../support/machine.ts";
import type { Progress } from "../provider.ts";
import { buildImages, buildPause, componentImages } from "./component-images.ts";
import type { ClusterImages } from "./kind-cluster.ts";
import { type ClusterPrograms, cluster, fingerprint } from "./machine.ts";

const LEFT_OUT = ["doc", "man", "locale"].map((folder) => `--dpkgopt=path-exclude=/usr/share/${folder}/*`);

const INSTALL_MS = 20 * 60_000;

/**
 * A root file system of Debian packages, installed, as a tar. Nothing is done where the file is there.
 *
 * @throws CommandError when mmdebstrap is missing, or a package cannot be had
 */
export async function debianRoot(runner: Runner, packages: readonly string[], file: string): Promise<void> {
  if (await isThere(file)) return;
  await mkdir(dirname(file), { recursive: true });
  const part = `${file}.part`;
  const options = ["--quiet", "--variant=minbase", "--format=tar", `--include=${packages.join(",")}`, ...LEFT_OUT];
  await runner.run(["mmdebstrap", ...options, DEBIAN_RELEASE, part], { timeoutMs: INSTALL_MS });
  await rename(part, file);
}

/**
 * Where a root file system is kept. Versions of Debian's packages are not pinned: it stays until the user removes it.
 */
export function rootFile(name: string, packages: readonly string[]): string {
  return cacheFolder(join("kind-debian", `${name}-${fingerprint(packages)}.tar`));
}

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
    const sources = {
      kubernetes: version,
      programs,
      pause,
      moduleFolder: await moduleFolder(runner, { path: "k8s.io/kubernetes", version }),
    };
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

/** Files that are laid over a node's root file system. */
const nodeFiles = fileURLToPath(new URL("../../../kind/node/", import.meta.url));

/** Where kind and kubeadm look for programs on a node. */
const PLACES: Readonly<Partial<Record<keyof ClusterPrograms, string>>> = {
  kubelet: "usr/bin",
  kubeadm: "usr/bin",
  kubectl: "usr/bin",
  containerd: "usr/local/bin",
  "containerd-shim-runc-v2": "usr/local/bin",
  ctr: "usr/local/bin",
  bridge: "opt/cni/bin",
  ptp: "opt/cni/bin",
  loopback: "opt/cni/bin",
  "host-local": "opt/cni/bin",
  portmap: "opt/cni/bin",
};

/** Only what a node needs is started: no udev, no getty, no timers. The kubelet brings the images along. */
const ENABLED = ["containerd.service", "kubelet.service"];
const disabled = [
  ...["lib/systemd/system/multi-user.target.wants", "lib/systemd/system/local-fs.target.wants"],
  ...["lib/systemd/system/basic.target.wants", "etc/systemd/system/multi-user.target.wants"],
  ...["etc/systemd/system/timers.target.wants", "etc/systemd/system/getty.target.wants"],
  "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
  ...["systemd-udevd-control.socket", "systemd-udevd-kernel.socket", "systemd-initctl.socket"].map(
    (socket) => `lib/systemd/system/sockets.target.wants/${socket}`,
  ),
];

interface NodeImageSources {
  readonly kubernetes: string;
  readonly programs: ClusterPrograms;
  /** A tar: Debian's root file system for nodes. */
  readonly root: string;
}

/** The root file system of a node as a tar, for `docker import`. */
async function buildNodeImage(runner: Runner, sources: NodeImageSources, file: string): Promise<void> {
  const work = await mkdtemp(join(dirname(file), ".node-"));
  try {
    const dir = join(work, "root");
    await mkdir(dir);
    await runner.run(["tar", "-xf", sources.root, "-C", dir, "--exclude=./dev/*"], { timeoutMs: 120_000 });
    await layOver(dir, sources);
    const part = join(work, "node.tar");
    await runner.run(["tar", "-C", dir, "-cf", part, "."], { timeoutMs: 300_000 });
    await rename(part, file);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function layOver(dir: string, { programs, kubernetes }: NodeImageSources): Promise<void> {
  for (const path of disabled) await rm(join(dir, path), { recursive: true, force: true });
  await cp(nodeFiles, dir, { recursive: true });
  for (const [name, folder] of Object.entries(PLACES)) {
    await mkdir(join(dir, folder), { recursive: true });
    await copyFile(programs[name as keyof ClusterPrograms], join(dir, folder, name));
    await chmod(join(dir, folder, name), 0o755);
  }
  const config = join(dir, "etc/containerd/config.toml");
  await writeFile(config, (await readFile(config, "utf8")).replace("@PAUSE@", TAGS.pause));
  await writeFile(join(dir, "kind/version"), kubernetes);
  for (const folder of ["kind/images", "etc/cni/net.d", "etc/kubernetes/manifests"]) {
    await mkdir(join(dir, folder), { recursive: true });
  }
  await symlink("/lib/systemd/systemd", join(dir, "usr/sbin/init"));
  await setUpSystemd(join(dir, "etc/systemd"));
}

async function setUpSystemd(dir: string): Promise<void> {
  const wants = join(dir, "system/multi-user.target.wants");
  await mkdir(wants, { recursive: true });
  for (const unit of ENABLED) await symlink(`/etc/systemd/system/${unit}`, join(wants, unit));
  await symlink("/lib/systemd/system/multi-user.target", join(dir, "system/default.target"));
  await symlink("/dev/null", join(dir, "system/systemd-binfmt.service"));
  const journal = join(dir, "journald.conf");
  await writeFile(journal, `${await readFile(journal, "utf8").catch(() => "[Journal]\n")}\nReadKMsg=no\n`);
}

/** Where Go keeps the source of a module; it is fetched when it is not there. */
export async function moduleFolder(
  runner: Runner,
  { path, version }: Pick<GoModule, "path" | "version">,
): Promise<string> {
  const argv = ["env", "-C", tmpdir(), "GOFLAGS=-mod=mod", "GOWORK=off", "go"] as const;
  const { stdout } = await runner.run([...argv, "mod", "download", "-json", `${path}@${version}`]);
  return String(JSON.parse(stdout).Dir);
}

/** Of the files that are a part of images. */
async function contents(): Promise<string> {
  const entries = await readdir(nodeFiles, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(paths.sort().map((path) => readFile(path, "utf8")));
  return fingerprint([TAGS, cluster.programs, nodePackages, toolPackages, texts]);
}
