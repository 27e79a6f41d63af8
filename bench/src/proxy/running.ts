import { copyFile, type FileHandle, mkdir, mkdtemp, open, readdir, readFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { asksOf } from "@fairlead/lab/provider/pod-handle";
import { type Daemon, startDaemon } from "@fairlead/lab/support/processes";
import { runnerIn } from "@fairlead/lab/wire";
import type { Bed } from "../cluster/bed.ts";
import type { MeasuredProxy, SettledAgent, Variant } from "./measured-proxy.ts";

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
 */
export async function withProxy<T>(
  bed: Pick<Bed, "folder" | "openNode">,
  settings: StartSettings,
  use: (running: RunningProxy) => Promise<T>,
): Promise<T> {
  await using running = await startProxy(bed, settings);
  return await whileItRuns(running.ended, use(running));
}

/** Starts a proxy on a new node and waits for its first complete sync. */
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

/** `1121 10:09:13.123456` of local time → milliseconds since the epoch. */
export function klogTime(text: string, year: number): number {
  const [, month, day, hour, minute, second, micros] = /^(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)\.(\d{6})$/.exec(text) ?? [];
  const whole = new Date(year, Number(month) - 1, Number(day), Number(hour), Number(minute), Number(second));
  return whole.getTime() + Number(micros) / 1000;
}

/** Milliseconds that a proxy has spent on full syncs of IPv4, by its own metrics. */
export async function fullSyncTime(node: NetworkNamespace): Promise<number> {
  return fullSyncTimeOf(await asksOf(runnerIn(node), {}).get("/metrics"));
}

/** Both proxies count under this name; each sample is a family's. */
const FULL_SYNC = /^kubeproxy_sync_full_proxy_rules_duration_seconds_sum\{ip_family="IPv4"\} (\S+)$/m;

export function fullSyncTimeOf(metrics: string): number {
  const [, seconds] = FULL_SYNC.exec(metrics.replaceAll("\r", "")) ?? [];
  if (seconds === undefined) throw new Error("the proxy's metrics have no duration of full syncs");
  return Number(seconds) * 1000;
}

/** What a process's end breaks is often noticed before the end itself. */
const NOTICED_MS = 1_000;

/**
 * Waits for work with a process.
 *
 * @param ended rejects when the process has ended by itself: this is what is thrown then, also where the work failed
 * first
 */
export async function whileItRuns<T>(ended: Promise<never>, work: Promise<T>): Promise<T> {
  try {
    return await Promise.race([work, ended]);
  } catch (error) {
    await Promise.race([ended, sleep(NOTICED_MS, undefined, { ref: false })]);
    throw error;
  }
}

/** `/proc/PID/stat` of all processes; empty: one that has ended meanwhile. */
export async function readProcesses(): Promise<readonly string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  return Promise.all(pids.map((pid) => readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")));
}

/**
 * What stands after the name in /proc/PID/stat, from the state on. The name in parentheses may hold anything; the
 * fields after it do not.
 */
export function statFields(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ");
}

/** @param stat of /proc/PID/stat */
export function parentOf(stat: string): number {
  return Number(statFields(stat)[1]);
}

/** The processes that one has started itself. @param stats of /proc/PID/stat, of all processes */
export function childrenAmong(stats: readonly string[], parent: number): readonly number[] {
  return stats.filter((stat) => parentOf(stat) === parent).map((stat) => Number.parseInt(stat, 10));
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

/** What a kubelet leaves so that all programs on a node take the same variant (KEP-3178). */
async function leaveHint(node: NetworkNamespace, variant: Variant): Promise<void> {
  for (const tool of [`iptables-${variant}`, `ip6tables-${variant}`]) {
    await runnerIn(node).run([tool, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
  }
}

const LOOK_EVERY_MS = 5;

/** A proxy's sync did not come to its end in time. */
class NoSyncError extends Error {
  constructor(withinMs: number) {
    super(`no sync within ${withinMs} ms`);
  }
}

/** Reads the times of syncs from a proxy's log as it grows. The proxy is not asked anything meanwhile. */
class SyncLog {
  readonly #file: FileHandle;
  readonly #pattern: RegExp;
  #rest = "";
  /** Milliseconds since the epoch, when each sync ended. */
  readonly #times: number[] = [];

  private constructor(file: FileHandle, pattern: RegExp) {
    this.#file = file;
    this.#pattern = pattern;
  }

  static async open(path: string, pattern: RegExp): Promise<SyncLog> {
    return new SyncLog(await open(path, "a+"), pattern);
  }

  /** The end of the first sync after a moment. */
  async syncAfter(moment: number, withinMs: number): Promise<number> {
    const deadline = performance.now() + withinMs;
    for (;;) {
      await this.#read();
      const found = this.#times.find((time) => time >= moment);
      if (found !== undefined) return found;
      if (performance.now() > deadline) throw new NoSyncError(withinMs);
      await sleep(LOOK_EVERY_MS);
    }
  }

  /** The end of the last sync, once none has ended for a while. */
  async lastSync(quietMs: number): Promise<number> {
    for (;;) {
      const before = this.#times.length;
      await sleep(quietMs);
      await this.#read();
      if (this.#times.length === before) return this.#times.at(-1) ?? 0;
    }
  }

  close(): Promise<void> {
    return this.#file.close();
  }

  async #read(): Promise<void> {
    const { bytesRead, buffer } = await this.#file.read(Buffer.alloc(256 * 1024), 0, 256 * 1024, null);
    const lines = (this.#rest + buffer.toString("utf8", 0, bytesRead)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) {
      const time = this.#pattern.exec(line)?.[1];
      if (time !== undefined) this.#times.push(klogTime(time, new Date().getFullYear()));
    }
  }
}

const LAST_LINES = 20;

/**
 * Keeps the log of a proxy that ended by itself, which else would go with the bench's own folder.
 *
 * @returns where it is, and its last lines
 */
async function keptLog(file: string, name: string): Promise<string> {
  const kept = join(tmpdir(), `fairlead-bench-${name}.log`);
  await copyFile(file, kept);
  const lines = (await readFile(kept, "utf8")).trimEnd().split("\n").slice(-LAST_LINES);
  return `its log is in ${kept} and ends with:\n${lines.join("\n")}`;
}
