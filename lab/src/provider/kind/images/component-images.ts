import { copyFile, mkdir, mkdtemp, rename, rm, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Layer, type NamedImage, OciLayout, ownArch, packLayer, tarLayer } from "@fairlead/deploy/image";
import type { Runner } from "@fairlead/kernel";
import type { ImagePart, LocalImage } from "./component-list.ts";

/** The time of every file: these images are distinguished by what is in them. */
const EPOCH = 1_767_225_600;
const PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

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
