import { readFile, writeFile } from "node:fs/promises";

const LIMIT = "/proc/sys/fs/inotify/max_user_instances";
/** Every systemd, kubelet and containerd has dozens. */
const ENOUGH = 1024;

/** Raises the one limit of the machine's that several nodes do not fit into. Gives what sets it back. */
export async function raiseInotify(): Promise<() => Promise<void>> {
  const before = (await readFile(LIMIT, "utf8")).trim();
  if (Number(before) >= ENOUGH) return async () => {};
  await writeFile(LIMIT, String(ENOUGH));
  return () => writeFile(LIMIT, before);
}
