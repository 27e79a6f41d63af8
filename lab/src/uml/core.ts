import { readFile } from "node:fs/promises";

let taken = 0;

/**
 * The core that a guest is kept on, another for each guest of this process and, as far as chance goes, of others.
 * Whatever a process in the guest asks of its kernel is two processes of the machine that wait for each other in turn:
 * on two cores each turn has to wake an idle one, and all takes several times as long.
 */
export async function coreOfNextGuest(): Promise<number> {
  const cores = coresIn(await readFile("/proc/self/status", "utf8"));
  return cores[(process.pid + taken++) % cores.length] ?? 0;
}

const ALLOWED = /^Cpus_allowed_list:\s*(\S+)$/m;

/** The cores that a process may run on, from its `/proc/PID/status`: a list such as `0-2,5`. */
export function coresIn(status: string): readonly number[] {
  const ranges = ALLOWED.exec(status)?.[1]?.split(",") ?? [];
  return ranges.flatMap((range) => {
    const [first = 0, last = first] = range.split("-").map(Number);
    return Array.from({ length: last - first + 1 }, (_, at) => first + at);
  });
}
