import { readdir, readFile } from "node:fs/promises";

/** A process and nobody who gets its number later. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot, as /proc/PID/stat has it. */
  readonly startTime: string;
}

/** @throws Error when there is no such process */
export async function processId(pid: number): Promise<ProcessId> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name in parentheses may hold anything; the fields after it do not.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return { pid, startTime: fields[19] ?? "" };
}

export async function isRunning({ pid, startTime }: ProcessId): Promise<boolean> {
  const now = await processId(pid).catch(() => undefined);
  return now?.startTime === startTime;
}

/** Sends a signal to that process only; false: it is gone. */
export async function signal(id: ProcessId, name: NodeJS.Signals): Promise<boolean> {
  if (!(await isRunning(id))) return false;
  try {
    return process.kill(id.pid, name);
  } catch {
    return false;
  }
}

/**
 * The first process of a container, by a part of its control group's name that no other container has.
 *
 * @returns its number here, undefined when there is none (yet)
 */
export async function firstProcessIn(group: string): Promise<number | undefined> {
  const pids = (await readdir("/proc")).map(Number).filter(Number.isInteger);
  const found = await Promise.all(
    pids.map(async (pid) => {
      const groups = await readFile(`/proc/${pid}/cgroup`, "utf8").catch(() => "");
      if (!groups.includes(group)) return undefined;
      const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
      // Its numbers, from here to the innermost space.
      return /^NSpid:.*\t1$/m.test(status) ? pid : undefined;
    }),
  );
  return found.find((pid) => pid !== undefined);
}

/** The processes that have this setting in their environment. */
export async function processesWith(name: string, value: string): Promise<readonly ProcessId[]> {
  const pids = (await readdir("/proc")).map(Number).filter((pid) => Number.isInteger(pid) && pid !== process.pid);
  const wanted = `${name}=${value}`;
  const found = await Promise.all(
    pids.map(async (pid) => {
      const environment = await readFile(`/proc/${pid}/environ`, "utf8").catch(() => "");
      return environment.split("\0").includes(wanted) ? processId(pid).catch(() => undefined) : undefined;
    }),
  );
  return found.filter((one) => one !== undefined);
}

/** The commands of the processes below a process: those that it has started, and those that these have started. */
export async function commandsBelow(pid: number): Promise<readonly string[]> {
  const tasks = await readdir(`/proc/${pid}/task`).catch(() => []);
  const lists = await Promise.all(
    tasks.map((task) => readFile(`/proc/${pid}/task/${task}/children`, "utf8").catch(() => "")),
  );
  const found = lists
    .flatMap((list) => list.split(" ").filter(Boolean))
    .map(async (child) => {
      const command = await readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "");
      return [command.replaceAll("\0", " ").trim(), ...(await commandsBelow(Number(child)))];
    });
  return (await Promise.all(found)).flat();
}
