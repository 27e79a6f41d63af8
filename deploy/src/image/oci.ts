/** Images by the OCI's rules: layers, configuration, layout. */

import { createHash } from "node:crypto";
import { constants, createReadStream, createWriteStream } from "node:fs";
import { copyFile, mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Runner } from "@fairlead/kernel";
import type { Arch } from "./arch.ts";

const TYPES = {
  index: "application/vnd.oci.image.index.v1+json",
  manifest: "application/vnd.oci.image.manifest.v1+json",
  config: "application/vnd.oci.image.config.v1+json",
  layer: "application/vnd.oci.image.layer.v1.tar+gzip",
  plainLayer: "application/vnd.oci.image.layer.v1.tar",
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

export interface NamedImage {
  readonly name: string;
  /** What `addImage` gave, one for each architecture. */
  readonly platforms: readonly Descriptor[];
}

export class OciLayout {
  readonly #dir: string;

  /** @param dir must exist and be empty */
  constructor(dir: string) {
    this.#dir = dir;
  }

  /**
   * Copies the layers in, writes configuration and manifest, and gives the manifest's descriptor. Images may share
   * layers.
   */
  async addImage({ arch, layers, config }: PlatformImage): Promise<Descriptor> {
    // A second name would change the file's change time, and the tar of another build that reads it fails for that.
    for (const { file, digest } of layers) await copyFile(file, await this.#blobPath(digest), COPY);
    const manifest = {
      schemaVersion: 2,
      mediaType: TYPES.manifest,
      config: await this.#addJson(TYPES.config, config),
      layers: layers.map(({ compressed, digest, size }) => ({
        mediaType: compressed ? TYPES.layer : TYPES.plainLayer,
        digest,
        size,
      })),
    };
    return { ...(await this.#addJson(TYPES.manifest, manifest)), platform: { architecture: arch, os: "linux" } };
  }

  /**
   * Names the images: `ghcr.io/fairlead-dev/fairlead:0.1.0`. Several platforms become an index; one image may have
   * several names.
   */
  async finish(named: readonly NamedImage[]): Promise<void> {
    const manifests: Descriptor[] = [];
    for (const { name, platforms } of named) {
      const annotations = {
        "io.containerd.image.name": name,
        "org.opencontainers.image.ref.name": name.slice(name.lastIndexOf(":") + 1),
      };
      manifests.push({ ...(await this.#target(platforms)), annotations });
    }
    const top = { schemaVersion: 2, mediaType: TYPES.index, manifests };
    await writeFile(join(this.#dir, "index.json"), JSON.stringify(top));
    await writeFile(join(this.#dir, "oci-layout"), JSON.stringify({ imageLayoutVersion: "1.0.0" }));
  }

  async #target(platforms: readonly Descriptor[]): Promise<Descriptor> {
    const [first] = platforms;
    if (first === undefined) throw new Error("an image needs at least one platform");
    if (platforms.length === 1) return first;
    return this.#addJson(TYPES.index, { schemaVersion: 2, mediaType: TYPES.index, manifests: platforms });
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

/** Without copying its bytes where the file system can. */
const COPY = constants.COPYFILE_FICLONE;

export interface Layer {
  readonly file: string;
  readonly compressed: boolean;
  /** Of the file, in bytes. */
  readonly size: number;
  /** `sha256:…` of the file. */
  readonly digest: string;
  /** `sha256:…` of the tar, which is the file itself or inside it. */
  readonly diffId: string;
  /** What made it, for the image's history. */
  readonly createdBy: string;
}

export interface LayerOptions {
  /** Seconds since the epoch: the time of every file. */
  readonly epoch: number;
  readonly createdBy: string;
  /** Default true; what stays on one machine is quicker made and loaded as it is. */
  readonly compressed?: boolean;
}

/**
 * Packs a folder: sorted, owned by root, all files at one time, so that the same files are the same bytes.
 *
 * @param file path of the layer without its ending
 */
export async function packLayer(
  runner: Runner,
  dir: string,
  file: string,
  { epoch, createdBy, compressed = true }: LayerOptions,
): Promise<Layer> {
  const tar = `${file}.tar`;
  const settled = [`--mtime=@${epoch}`, "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];
  await runner.run(["tar", "--sort=name", ...settled, "-C", dir, "-cf", tar, "."], { timeoutMs: 300_000 });
  return compressed ? compressedLayer(tar, createdBy) : tarLayer(tar, createdBy);
}

async function compressedLayer(tar: string, createdBy: string): Promise<Layer> {
  const file = `${tar}.gz`;
  await pipeline(createReadStream(tar), createGzip({ level: 9 }), createWriteStream(file));
  const [digest, diffId, { size }] = [await hashFile(file), await hashFile(tar), await stat(file)];
  return { file, compressed: true, size, digest, diffId, createdBy };
}

/** A tar as the layer that it is. */
export async function tarLayer(file: string, createdBy: string): Promise<Layer> {
  const [digest, { size }] = [await hashFile(file), await stat(file)];
  return { file, compressed: false, size, digest, diffId: digest, createdBy };
}

/** `sha256:` and the hash in hex. */
export async function hashFile(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return `sha256:${hash.digest("hex")}`;
}

export function hashText(text: string): string {
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}
