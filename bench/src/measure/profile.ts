import { mkdir, open, readdir } from "node:fs/promises";
import { join } from "node:path";
import { waitUntil } from "@fairlead/lab/agent/wait-until";
import { fill } from "../cluster/load.ts";
import type { Size } from "../cluster/objects.ts";
import { fairlead } from "../proxy/measured-proxy.ts";
import { startProxy } from "../proxy/running.ts";
import { type BedOptions, type Progress, withBed } from "./prepare.ts";

const SNAPSHOT_MS = 60_000;

/**
 * Leaves a CPU profile of Fairlead's start, from its first line to its first complete sync, and a heap snapshot after
 * it:
 * `*.cpuprofile` for Chrome's Performance panel, `*.heapsnapshot` for its Memory panel.
 *
 * @returns the files' names
 */
export async function takeProfile(
  options: BedOptions & Size,
  folder: string,
  progress: Progress,
): Promise<readonly string[]> {
  await mkdir(folder, { recursive: true });
  const before = new Set(await readdir(folder));
  const files = async (end: string) =>
    (await readdir(folder)).filter((name) => name.endsWith(end) && !before.has(name));
  const node = [
    "--cpu-prof",
    `--cpu-prof-dir=${folder}`,
    "--heapsnapshot-signal=SIGUSR2",
    `--diagnostic-dir=${folder}`,
  ];
  await withBed(options, progress, async ({ bed, startSettings }) => {
    await fill(bed, options);
    await using running = await startProxy(bed, { ...startSettings, subject: fairlead(node) });
    process.kill(running.pid, "SIGUSR2");
    await waitUntil("the heap snapshot", SNAPSHOT_MS, async () => {
      const [name] = await files(".heapsnapshot");
      return name !== undefined && (await isWhole(join(folder, name))) ? true : undefined;
    });
    await running.stop();
  });
  return [...(await files(".cpuprofile")), ...(await files(".heapsnapshot"))];
}

/** It is one JSON object, which is whole with its last brace. */
async function isWhole(file: string): Promise<boolean> {
  await using handle = await open(file);
  const { size } = await handle.stat();
  const { buffer, bytesRead } = await handle.read(Buffer.alloc(2), 0, 2, Math.max(0, size - 2));
  return buffer.toString("utf8", 0, bytesRead).trimEnd().endsWith("}");
}
