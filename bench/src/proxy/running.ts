import { mkdir, mkdtemp, readFile } from "node:fs/promises";
import { join } from "node:path";
import { runnerIn } from "@fairlead/e2e/lab/apply";
import { type Daemon, startDaemon } from "@fairlead/e2e/support/daemon";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import type { Bed } from "../cluster/bed.ts";
import { childrenAmong, readProcesses } from "./processes.ts";
import type { Subject } from "./subject.ts";
import { NoSyncError, SyncLog } from "./sync-log.ts";
import type { Variant } from "./tools.ts";

/** A proxy at work on a node of its own. */
export interface RunningProxy {
  readonly pid: number;
  readonly node: NetworkNamespace;
  readonly log: SyncLog;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Milliseconds since the epoch, when its first sync was complete. */
  readonly syncedAt: number;
  /** Rejects with the last lines of its log when the process ends by itself. */
  readonly ended: Promise<never>;
  /** Ends the process; the node with its rules stays. */
  stop(): Promise<void>;
  /** Ends both. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface StartSettings {
  readonly subject: Subject;
  readonly variant: Variant;
  readonly configFile: string;
  /** With the tools of the variant. */
  readonly path: string;
  /** For the first sync, in milliseconds. */
  readonly patience: number;
}

/** A proxy's first sync took longer than the patience for it. */
export class LateStartError extends Error {
  readonly waitedMs: number;

  constructor({ name }: Subject, waitedMs: number, cause: Error) {
    super(`${name} has not come to its first complete sync within ${waitedMs} ms`, { cause });
    this.waitedMs = waitedMs;
  }
}

const LAST_LINES = 20;

/**
 * Starts a proxy on a new node and waits for its first complete sync.
 *
 * @throws LateStartError when that takes longer than the patience for it
 */
export async function startProxy(bed: Bed, settings: StartSettings): Promise<RunningProxy> {
  const { subject, variant, configFile, path, patience } = settings;
  const opened = new AsyncDisposableStack();
  try {
    const node = opened.use(await bed.openNode());
    await leaveHint(node, variant);
    const folder = await mkdtemp(join(bed.folder, `${subject.name}-`));
    await mkdir(join(folder, "state"));
    const logFile = join(folder, "log");
    const log = await SyncLog.open(logFile, subject.synced);
    opened.defer(() => log.close());
    const startedAt = Date.now();
    const argv = subject.argv(configFile, join(folder, "state"));
    const daemon = await startDaemon(node, {
      name: subject.name,
      argv,
      logFile,
      // As the image has it.
      env: { PATH: path, NODE_OPTIONS: "", MALLOC_ARENA_MAX: "1" },
    });
    opened.defer(() => stopWithTools(daemon));
    const ended = daemon.ended.then(async (how) => {
      throw new Error(`${how}; its last lines:\n${await lastLines(logFile)}`);
    });
    const synced = log.syncAfter(startedAt, patience).catch((error: unknown) => {
      throw error instanceof NoSyncError ? new LateStartError(subject, patience, error) : error;
    });
    const syncedAt = await Promise.race([synced, ended]);
    const kept = opened.move();
    return {
      pid: daemon.pid,
      node,
      log,
      startedAt,
      syncedAt,
      ended,
      stop: () => daemon.stop(),
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
}

/** The log goes with the bed. */
async function lastLines(file: string): Promise<string> {
  return (await readFile(file, "utf8")).trimEnd().split("\n").slice(-LAST_LINES).join("\n");
}

/** A tool that a proxy waits for would go on without it, for an hour and more. */
async function stopWithTools(daemon: Daemon): Promise<void> {
  const tools = childrenAmong(await readProcesses(), daemon.pid);
  await daemon.stop();
  for (const tool of tools) end(tool);
}

function end(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}

/** What a kubelet leaves so that everybody on a node takes the same variant (KEP-3178). */
async function leaveHint(node: NetworkNamespace, variant: Variant): Promise<void> {
  for (const tool of [`iptables-${variant}`, `ip6tables-${variant}`]) {
    await runnerIn(node).run([tool, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
  }
}
