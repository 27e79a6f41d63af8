import { access } from "node:fs/promises";

/** Of these processes and this folder, what is still there. */
export async function leftovers(pids: readonly number[], folder: string): Promise<readonly string[]> {
  const processes = pids.filter(isRunning).map((pid) => `process ${pid}`);
  const there = await access(folder).then(
    () => [folder],
    () => [],
  );
  return [...processes, ...there];
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
