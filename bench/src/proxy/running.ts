import { mkdir, mkdtemp } from "node:fs/promises";
import { join } from "node:path";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { type Daemon, startDaemon } from "@fairlead/lab/support/processes";
import { runnerIn } from "@fairlead/lab/wire";
import type { Bed } from "../cluster/bed.ts";
import { keptLog, whileItRuns } from "./ended.ts";
import type { MeasuredProxy } from "./measured-proxy.ts";
import { childrenAmong, readProcesses } from "./processes.ts";
import type { SettledAgent } from "./settled-agent.ts";
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
  /** Rejects with how it ended and where its log is, when the process ends by itself; after `stop` never. */
  readonly ended: Promise<never>;
  /** Ends the process; the node with its rules stays. */
  stop(): Promise<void>;
  /** Ends both. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface StartSettings {
  readonly subject: MeasuredProxy;
  readonly variant: Variant;
  readonly configFile: string;
  readonly agent: SettledAgent;
  /** With the tools of the variant. */
  readonly path: string;
  /** For the first sync, in milliseconds. */
  readonly patience: number;
}

/** A proxy's first sync took longer than the patience for it. */
export class LateStartError extends Error {
  readonly waitedMs: number;

  constructor({ name }: MeasuredProxy, waitedMs: number, cause: Error) {
    super(`${name} has not come to its first complete sync within ${waitedMs} ms`, { cause });
    this.waitedMs = waitedMs;
  }
}

/**
 * Starts a proxy for as long as `use` takes. One that ends meanwhile is the error, whatever its end made of the work.
 *
 * @throws LateStartError when its first sync takes longer than the patience for it
 */
export async function withProxy<T>(
  bed: Pick<Bed, "folder" | "openNode">,
  settings: StartSettings,
  use: (running: RunningProxy) => Promise<T>,
): Promise<T> {
  await using running = await startProxy(bed, settings);
  return await whileItRuns(running.ended, use(running));
}

/**
 * Starts a proxy on a new node and waits for its first complete sync.
 *
 * @throws LateStartError when that takes longer than the patience for it
 */
export async function startProxy(
  bed: Pick<Bed, "folder" | "openNode">,
  settings: StartSettings,
): Promise<RunningProxy> {
  const { subject, variant, configFile, agent, path, patience } = settings;
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
    const argv = subject.argv({ configFile, stateFolder: join(folder, "state"), agent: agent.bundle });
    const daemon = await startDaemon(node, {
      name: subject.name,
      argv,
      logFile,
      // As the image has it.
      env: { PATH: path, NODE_OPTIONS: "", MALLOC_ARENA_MAX: "1", NODE_COMPILE_CACHE: agent.compiled },
    });
    let stopped = false;
    opened.defer(() => {
      stopped = true;
      return stopWithTools(daemon);
    });
    const ended = daemon.ended.then(async (how): Promise<never> => {
      if (stopped) return new Promise(() => {});
      throw new Error(`${how}; ${await keptLog(logFile, `${subject.name}-${daemon.pid}`)}`);
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
      stop() {
        stopped = true;
        return daemon.stop();
      },
      [Symbol.asyncDispose]: () => kept.disposeAsync(),
    };
  } catch (error) {
    await opened.disposeAsync();
    throw error;
  }
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
