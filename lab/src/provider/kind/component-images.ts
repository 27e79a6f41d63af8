/** Images of Kubernetes' components, made from programs. */

import { copyFile, mkdir, mkdtemp, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Layer, type NamedImage, OciLayout, ownArch, packLayer, tarLayer } from "@fairlead/deploy/image";
import type { Runner } from "@fairlead/kernel";
import { TAGS } from "../../../kind/versions.ts";
import type { ControlPlanePaths } from "../../control-plane/programs.ts";
import type { ClusterPrograms } from "./machine.ts";

/**
 * Paths in the image → files of this machine, or `->` and what a symbolic link says; or a root file system with the
 * tools that Kubernetes' specs want of their pods.
 */
type ImagePart = "tools" | Readonly<Record<string, string>>;

export interface LocalImage {
  readonly names: readonly string[];
  readonly parts: readonly ImagePart[];
  readonly entrypoint?: readonly string[];
  readonly command?: readonly string[];
}

/** The time of every file: these images are distinguished by what is in them. */
const EPOCH = 1_767_225_600;

/**
 * One archive of images, without compression: `ctr images import` and `kind load` take it.
 *
 * @param toolsRoot a tar: the root file system that the part `tools` stands for
 * @param file is written when everything is in it
 */
export async function buildImages(
  runner: Runner,
  images: readonly LocalImage[],
  toolsRoot: string,
  file: string,
): Promise<void> {
  const work = await mkdtemp(join(dirname(file), ".images-"));
  try {
    const layers = new LayerStore(runner, toolsRoot, work);
    const layout = new OciLayout(await folder(work, "layout"));
    const named: NamedImage[] = [];
    for (const image of images) named.push(...(await add(layout, layers, image)));
    await layout.finish(named);
    await layout.archive(runner, join(work, "archive.tar"), EPOCH);
    await rename(join(work, "archive.tar"), file);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

const REGISTRY = "registry.k8s.io";

/** Serves as every image of Fairlead's own specs: it does nothing. */
export const PAUSE_IMAGE = `${REGISTRY}/pause:${TAGS.pause}`;

/** What images are made of. */
interface PartSources {
  readonly kubernetes: string;
  readonly programs: ClusterPrograms & ControlPlanePaths;
  /** The first process of pods. */
  readonly pause: string;
  /** The folder of Kubernetes' module, for what agnhost takes from there alongside its program. */
  readonly moduleFolder: string;
}

const TESTS = `${REGISTRY}/e2e-test-images`;

/**
 * The images of a cluster, by the names that kubeadm and Kubernetes' specs know. Some stand in for others: all that the
 * specs of services want of those is a shell with dig and getent, or something that listens on port 80.
 */
export function componentImages({ kubernetes, programs, pause, moduleFolder }: PartSources): readonly LocalImage[] {
  const component = (name: keyof PartSources["programs"], ...under: readonly ImagePart[]): LocalImage => ({
    names: [`${REGISTRY}/${name}:${kubernetes}`],
    parts: [...under, { [`usr/local/bin/${name}`]: programs[name] }],
  });
  const porter = join(moduleFolder, "test/images/agnhost/porter");
  return [
    {
      names: [PAUSE_IMAGE, `${REGISTRY}/pause:3.10.1`, `${REGISTRY}/pause:3.10`],
      parts: [{ pause }],
      entrypoint: ["/pause"],
    },
    component("kube-apiserver"),
    component("kube-controller-manager"),
    component("kube-scheduler"),
    component("kube-proxy", "tools"),
    { ...component("etcd"), names: [`${REGISTRY}/etcd:${TAGS.etcd}`] },
    {
      names: [`${REGISTRY}/coredns/coredns:${TAGS.coredns}`],
      parts: [{ coredns: programs.coredns }],
      entrypoint: ["/coredns"],
    },
    {
      names: ["2.63.0", "2.55"].map((tag) => `${TESTS}/agnhost:${tag}`),
      parts: [
        "tools",
        {
          agnhost: programs.agnhost,
          "agnhost-2": "->agnhost",
          "localhost.crt": join(porter, "localhost.crt"),
          "localhost.key": join(porter, "localhost.key"),
        },
        { coredns: programs.coredns },
      ],
      entrypoint: ["/agnhost"],
      command: ["pause"],
    },
    {
      names: [
        ...["busybox:1.37.0-1", "busybox:1.36.1-1", "glibc-dns-testing:2.0.0"].map((name) => `${TESTS}/${name}`),
        `${REGISTRY}/build-image/distroless-iptables:v0.9.6`,
      ],
      parts: ["tools"],
      command: ["sh"],
    },
    {
      names: [`${TESTS}/regression-issue-74839:1.4`],
      parts: [{ "boom-server": programs["regression-issue-74839"] }],
      entrypoint: ["/boom-server"],
    },
    {
      names: ["1.15-4", "1.27-0"].map((tag) => `${TESTS}/nginx:${tag}`),
      parts: ["tools", { agnhost: programs.agnhost }],
      command: ["/agnhost", "test-webserver"],
    },
  ];
}

const source = fileURLToPath(new URL("../../../kind/pause.c", import.meta.url));

/** The first process of pods, by the C compiler: a Go program takes twenty times the memory. */
export async function buildPause(runner: Runner, file: string): Promise<void> {
  await runner.run(["gcc", "-Os", "-static", "-s", "-o", file, source]);
}

const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

async function add(layout: OciLayout, store: LayerStore, image: LocalImage): Promise<readonly NamedImage[]> {
  const layers: Layer[] = [];
  for (const part of image.parts) layers.push(await store.layer(part));
  const arch = ownArch();
  const config = {
    architecture: arch,
    os: "linux",
    created: new Date(EPOCH * 1000).toISOString(),
    config: { Env: [PATH], WorkingDir: "/", Entrypoint: image.entrypoint, Cmd: image.command },
    rootfs: { type: "layers", diff_ids: layers.map(({ diffId }) => diffId) },
  };
  const platforms = [await layout.addImage({ arch, layers, config })];
  return image.names.map((name) => ({ name, platforms }));
}

/** Makes each layer once. */
class LayerStore {
  readonly #made = new Map<string, Layer>();
  readonly #runner: Runner;
  readonly #toolsRoot: string;
  readonly #work: string;

  constructor(runner: Runner, toolsRoot: string, work: string) {
    this.#runner = runner;
    this.#toolsRoot = toolsRoot;
    this.#work = work;
  }

  async layer(part: ImagePart): Promise<Layer> {
    const key = JSON.stringify(part);
    const found = this.#made.get(key);
    if (found !== undefined) return found;
    const layer = part === "tools" ? await tarLayer(this.#toolsRoot, "Debian packages") : await this.#pack(part);
    this.#made.set(key, layer);
    return layer;
  }

  async #pack(files: Exclude<ImagePart, "tools">): Promise<Layer> {
    const name = `layer-${this.#made.size}`;
    const dir = await folder(this.#work, name);
    for (const [path, source] of Object.entries(files)) {
      const target = join(dir, path);
      await mkdir(dirname(target), { recursive: true });
      if (source.startsWith("->")) await symlink(source.slice("->".length), target);
      else await copyFile(source, target);
    }
    const layer = await packLayer(this.#runner, dir, join(this.#work, name), {
      epoch: EPOCH,
      createdBy: "fairlead e2e",
      compressed: false,
    });
    await rm(dir, { recursive: true });
    return layer;
  }
}

async function folder(parent: string, name: string): Promise<string> {
  const path = join(parent, name);
  await mkdir(path);
  return path;
}
