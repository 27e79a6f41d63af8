import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Runner } from "@fairlead/kernel";
import type { Arch } from "../src/image/arch.ts";
import { hashFile } from "../src/image/hash.ts";
import type { Descriptor } from "../src/image/oci.ts";

/**
 * Unpacks an archive and puts its layers on each other, as a container runtime does.
 *
 * @param dir an empty folder; the image's root is `root` in it
 * @throws Error when a blob is not what it is called, or the image has no such architecture
 */
export async function unpackImage(runner: Runner, archive: string, dir: string, arch: Arch): Promise<string> {
  await runner.run(["tar", "-xf", archive, "-C", dir]);
  const { manifests } = JSON.parse(await readFile(join(dir, "index.json"), "utf8"));
  const { layers } = await manifestOf(dir, manifests[0], arch);
  const root = join(dir, "root");
  await mkdir(root);
  for (const layer of layers) await runner.run(["tar", "-xzf", await blob(dir, layer), "-C", root]);
  return root;
}

interface Manifest {
  readonly layers: readonly Descriptor[];
}

async function manifestOf(dir: string, descriptor: Descriptor, arch: Arch): Promise<Manifest> {
  const content = JSON.parse(await readFile(await blob(dir, descriptor), "utf8"));
  if (content.manifests === undefined) return content;
  const platform = content.manifests.find(({ platform: { architecture } }: { platform: { architecture: string } }) => {
    return architecture === arch;
  });
  if (platform === undefined) throw new Error(`the image is not for ${arch}`);
  return manifestOf(dir, platform, arch);
}

async function blob(dir: string, { digest }: Descriptor): Promise<string> {
  const file = join(dir, "blobs", digest.replace(":", "/"));
  const found = await hashFile(file);
  if (found !== digest) throw new Error(`${digest} is in truth ${found}`);
  return file;
}
