import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Runner } from "@fairlead/kernel";
import { hashFile } from "./hash.ts";

/** A compressed layer in a file. */
export interface Layer {
  readonly file: string;
  /** Of the compressed file, in bytes. */
  readonly size: number;
  /** `sha256:…` of the compressed file. */
  readonly digest: string;
  /** `sha256:…` of the tar inside. */
  readonly diffId: string;
  /** What made it, for the image's history. */
  readonly createdBy: string;
}

export interface LayerOptions {
  /** Seconds since the epoch: the time of every file. */
  readonly epoch: number;
  readonly createdBy: string;
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
  { epoch, createdBy }: LayerOptions,
): Promise<Layer> {
  const tar = `${file}.tar`;
  const settled = [`--mtime=@${epoch}`, "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"];
  await runner.run(["tar", "--sort=name", ...settled, "-C", dir, "-cf", tar, "."], { timeoutMs: 300_000 });
  const compressed = `${tar}.gz`;
  await pipeline(createReadStream(tar), createGzip({ level: 9 }), createWriteStream(compressed));
  const [digest, diffId, { size }] = [await hashFile(compressed), await hashFile(tar), await stat(compressed)];
  return { file: compressed, size, digest, diffId, createdBy };
}
