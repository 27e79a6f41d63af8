import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { createRunner } from "@fairlead/kernel";
import { cacheFolder } from "../../../control-plane/program-set.ts";
import { isThere } from "../../../support/is-there.ts";
import type { Progress } from "../../provider.ts";
import { buildImages } from "../images/component-images.ts";
import { debianRoot, rootFile } from "../images/debian-root.ts";
import { fingerprint } from "../programs.ts";

/** An image of Debian packages, made here. */
export interface NetworkImage {
  /** Of the image, and a part of the names of files that are kept. */
  readonly name: string;
  readonly packages: readonly string[];
  /** Paths in the image → programs of this machine. */
  readonly files?: Readonly<Record<string, string>>;
  /** Of the packages' root file system, when another image has the same; default: `name`. */
  readonly root?: string;
}

/** As manifests name it. */
export function imageName({ name }: Pick<NetworkImage, "name">): string {
  return `localhost/${name}:made-here`;
}

/** @returns the archive, as it is kept by what it is made of */
export async function networkImage(image: NetworkImage, progress: Progress): Promise<string> {
  const { name, packages, files = {}, root = name } = image;
  const folder = cacheFolder("kind-networks");
  const file = join(folder, `${name}-${fingerprint([packages, files])}.tar`);
  if (await isThere(file)) return file;
  progress(`making the image of ${name} (once)`);
  await mkdir(folder, { recursive: true });
  const runner = createRunner();
  const tar = rootFile(root, packages);
  await debianRoot(runner, packages, tar);
  await buildImages(runner, [{ names: [imageName(image)], parts: ["tools", files] }], tar, file);
  return file;
}
