import { createHash } from "node:crypto";
import { stat } from "node:fs/promises";
import { join } from "node:path";

/** The inode of this process's network namespace. */
export async function ownNetwork(root = "/proc"): Promise<number> {
  return (await stat(join(root, "self/ns/net"))).ino;
}

/**
 * The byte of a lock file that stands for an agent of this network namespace: the namespace's inode, which has 32 bits,
 * for the one without a name, and above that a hash of 31 bits for those with one.
 */
export async function lockPlace(instance: string, root = "/proc"): Promise<bigint> {
  const network = BigInt(await ownNetwork(root));
  if (instance === "") return network;
  const hash = createHash("sha256").update(instance).digest().readUInt32BE() >>> 1;
  return network + (BigInt(hash) << 32n);
}
