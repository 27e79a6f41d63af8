import { readdirSync, readFileSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";

/**
 * What a test that ran into its limit has started is killed, with all that descends from it, and so is what is left
 * when a file ends: an abandoned test ends nothing itself. Only for kinds whose files have processes of their own.
 */
let running = 0;
let beforeFile: ReadonlySet<number> = new Set();
const BEFORE = new Map<string, ReadonlySet<number>>();

beforeAll(() => {
  beforeFile = new Set(childrenOf(process.pid));
});

beforeEach(({ task }) => {
  running += 1;
  BEFORE.set(task.id, new Set(childrenOf(process.pid)));
});

afterEach(({ signal, task }) => {
  running -= 1;
  // A process does not say which of several tests has started it: after those that run at once the file's end comes.
  if (signal.aborted && running === 0) killAllBut(BEFORE.get(task.id) ?? beforeFile);
  BEFORE.delete(task.id);
});

afterAll(() => killAllBut(beforeFile));

function killAllBut(known: ReadonlySet<number>): void {
  const found = childrenOf(process.pid).filter((id) => !known.has(id));
  for (const id of found) found.push(...childrenOf(id));
  for (const id of found) {
    try {
      process.kill(id, "SIGKILL");
    } catch {
      // It has ended meanwhile.
    }
  }
}

/** None of a process that has ended, and on systems that have no /proc. */
function childrenOf(pid: number): readonly number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) => idsIn(`/proc/${pid}/task/${thread}/children`));
  } catch {
    return [];
  }
}

function idsIn(file: string): readonly number[] {
  try {
    return readFileSync(file, "utf8").split(" ").filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
