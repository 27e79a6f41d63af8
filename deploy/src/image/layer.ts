import { createReadStream, createWriteStream } from "node:fs";
import { stat } from "node:fs/promises";
import { pipeline } from "node:stream/promises";
import { createGzip } from "node:zlib";
import type { Runner } from "@fairlead/kernel";
import { hashFile } from "./hash.ts";

/** A layer in a file. */
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
