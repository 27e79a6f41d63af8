import { chmod, copyFile, cp, mkdir, mkdtemp, readFile, rename, rm, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Runner } from "@fairlead/kernel";
import { TAGS } from "../../../../kind/versions.ts";
import type { ClusterPrograms } from "../programs.ts";

/** Files that are laid over a node's root file system. */
export const nodeFiles = fileURLToPath(new URL("../../../../kind/node/", import.meta.url));

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

/** Only what a node needs is started: no udev, no getty, no timers. */
const ENABLED = ["containerd.service", "kind-images.service", "kubelet.service"];
const disabled = [
  ...["lib/systemd/system/multi-user.target.wants", "lib/systemd/system/local-fs.target.wants"],
  ...["lib/systemd/system/basic.target.wants", "etc/systemd/system/multi-user.target.wants"],
  ...["etc/systemd/system/timers.target.wants", "etc/systemd/system/getty.target.wants"],
  "lib/systemd/system/sysinit.target.wants/systemd-tmpfiles-setup.service",
  ...["systemd-udevd-control.socket", "systemd-udevd-kernel.socket", "systemd-initctl.socket"].map(
    (socket) => `lib/systemd/system/sockets.target.wants/${socket}`,
  ),
];

export interface NodeImageSources {
  readonly kubernetes: string;
  readonly programs: ClusterPrograms;
  /** A tar: Debian's root file system for nodes. */
  readonly root: string;
}

/** The root file system of a node as a tar, for `docker import`. */
export async function buildNodeImage(runner: Runner, sources: NodeImageSources, file: string): Promise<void> {
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
