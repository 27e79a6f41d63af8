import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { type Arch, ownArch } from "../src/image/arch.ts";
import { type Descriptor, hashFile } from "../src/image/oci.ts";
import { agentVersion, artifactsDir } from "../src/paths.ts";

/** An image, unpacked, and a network namespace with one node's address to run it in. */
export interface UnpackedImage {
  readonly root: string;
  /** What a pod mounts: `home`, `config`, `serviceaccount` (in-container.sh). */
  readonly pod: string;
  readonly namespace: NetworkNamespace;
  /** In the namespace, outside of the image. */
  readonly runner: Runner;
  inContainer(...argv: readonly string[]): readonly [string, ...string[]];
  /** Both outputs of a program of the image. */
  run(...argv: readonly string[]): Promise<string>;
  dispose(): Promise<void>;
}

const script = join(import.meta.dirname, "in-container.sh");

/** The image of `pnpm image`, or the OCI archive that FAIRLEAD_IMAGE names. Needs root. */
export async function openImage(): Promise<UnpackedImage> {
  const scratch = await mkdtemp(join(tmpdir(), "fairlead-image-"));
  const [image, pod] = [join(scratch, "image"), join(scratch, "pod")];
  for (const folder of [image, join(pod, "home")]) await mkdir(folder, { recursive: true });
  const own = join(artifactsDir, `image/fairlead-${await agentVersion()}.oci.tar`);
  const { FAIRLEAD_IMAGE: archive = own } = process.env;
  const root = await unpackImage(createRunner(), archive, image, ownArch());
  const namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: { NODE_EXTRA_CA_CERTS: "" } });
  await addNode(runner);
  const inContainer = (...argv: readonly string[]) => [script, root, pod, ...argv] as const;
  return {
    root,
    pod,
    namespace,
    runner,
    inContainer,
    run: async (...argv) => (await runner.run(inContainer(...argv))).stdout,
    dispose: async () => {
      await namespace.dispose();
      await rm(scratch, { recursive: true, force: true });
    },
  };
}

/** An address, 192.0.2.10, and a way out that ends in the namespace. */
async function addNode(runner: Runner): Promise<void> {
  for (const command of [
    "link add eth0 type veth peer name eth0-end",
    "link set eth0 up",
    "link set eth0-end up",
    "address add 192.0.2.10/24 dev eth0",
    "route add default via 192.0.2.1",
  ]) {
    await runner.run(["ip", ...command.split(" ")]);
  }
}

/**
 * Unpacks an archive and puts its layers on each other, as a container runtime does.
 *
 * @param dir an empty folder; the image's root is `root` in it
 */
async function unpackImage(runner: Runner, archive: string, dir: string, arch: Arch): Promise<string> {
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
