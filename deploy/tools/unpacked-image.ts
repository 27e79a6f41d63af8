import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { agentVersion } from "../src/agent-version.ts";
import { ownArch } from "../src/image/arch.ts";
import { artifactsDir } from "../src/paths.ts";
import { unpackImage } from "./unpack.ts";

/** An image, unpacked, and a network namespace with one node's address to run it in. */
export interface UnpackedImage {
  readonly root: string;
  /** What a pod mounts: `home`, `config`, `serviceaccount` (in-container.sh). */
  readonly pod: string;
  readonly namespace: NetworkNamespace;
  /** In the namespace, outside of the image. */
  readonly runner: Runner;
  /** The command that runs a program of the image, as hardened as the manifests have it. */
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
