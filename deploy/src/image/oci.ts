import { mkdir, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import type { Arch } from "./arch.ts";
import { hashText } from "./hash.ts";
import type { Layer } from "./layer.ts";

const TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
} as const;

/** What a blob is called by (OCI image specification 1.1, descriptor). */
export interface Descriptor {
  readonly mediaType: string;
  readonly digest: string;
  /** Bytes. */
  readonly size: number;
  readonly platform?: { readonly architecture: string; readonly os: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

export interface PlatformImage {
  readonly arch: Arch;
  readonly layers: readonly Layer[];
  /** The image's configuration, see config.ts. */
  readonly config: unknown;
}

/** An OCI image layout in a folder, and the archive of it. */
export class OciLayout {
  readonly #dir: string;

  /** @param dir must exist and be empty */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /** Moves the layers in, writes configuration and manifest, and gives the manifest's descriptor. */
  async addImage({ arch, layers, config }: PlatformImage): Promise<Descriptor> {
    for (const layer of layers) await rename(layer.file, await this.#blobPath(layer.digest));
    const manifest = {
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config: await this.#addJson(TYPES.config, config),
      layers: layers.map(({ digest, size }) => ({ mediaType: TYPES.layer, digest, size })),
    };
    return { ...(await this.#addJson(TYPES.manifest, manifest)), platform: { architecture: arch, os: "linux" } };
  }

  /** Names the image: `ghcr.io/fairlead-dev/fairlead:0.1.0`. Several platforms become an index. */
  async finish(name: string, images: readonly Descriptor[]): Promise<void> {
    const [first] = images;
    if (first === undefined) throw new Error("an image needs at least one platform");
    const index = { schemaVersion: 2, mediaType: TYPES.index, manifests: images };
    const target = images.length === 1 ? first : await this.#addJson(TYPES.index, index);
    const annotations = {
      "io.containerd.image.name": name,
      "org.opencontainers.image.ref.name": name.slice(name.lastIndexOf(":") + 1),
    };
    const top = { schemaVersion: 2, mediaType: TYPES.index, manifests: [{ ...target, annotations }] };
    await writeFile(join(this.#dir, "index.json"), JSON.stringify(top));
    await writeFile(join(this.#dir, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  /** Packs the layout: what `kind load image-archive`, `ctr images import` and skopeo's oci-archive: take. */
  async archive(runner: Runner, file: string, epoch: number): Promise<void> {
    const settled = [`--mtime=@${epoch}`, "--owner=0", "--group=0", "--numeric-owner", "--format=gnu", "--mode=a+rX"];
    const members = ["oci-layout", "index.json", "blobs"];
    await runner.run(["tar", "--sort=name", ...settled, "-C", this.#dir, "-cf", file, ...members], {
      timeoutMs: 300_000,
    });
  }

  async #addJson(mediaType: string, value: unknown): Promise<Descriptor> {
    const text = JSON.stringify(value);
    const digest = hashText(text);
    await writeFile(await this.#blobPath(digest), text);
    return { mediaType, digest, size: Buffer.byteLength(text) };
  }

  async #blobPath(digest: string): Promise<string> {
    const [algorithm = "", hash = ""] = digest.split(":");
    const folder = join(this.#dir, "blobs", algorithm);
    await mkdir(folder, { recursive: true });
    return join(folder, hash);
  }
}
