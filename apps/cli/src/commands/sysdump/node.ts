import { errorText, IP_FAMILIES } from "@fairlead/base";
import type { Runner, RunOptions, StreamOptions, Tracking } from "@fairlead/kernel";
import { isTcpLiberal, liveEnvironment } from "../../node/environment.ts";
import { nodeAddresses } from "../../node/kernel-state.ts";
import { type RecordedRun, recordingRunner } from "../../node/recorded-runs.ts";
import { liveRules } from "../../node/rules.ts";
import { withoutSecrets } from "../../sysdump/keep/free-text.ts";
import { keptPage, PAGE_PATHS } from "../../sysdump/keep/pages.ts";
import { keptRun } from "../../sysdump/keep/runs.ts";
import { type Missing, PATHS, type RunEntry, runFile } from "../../sysdump/layout.ts";
import { type ConnectionCounts, countConnections } from "./connections.ts";

/** How a node is asked. Each may throw. */
export interface DumpedNode {
  readonly name: string;
  readonly runner: () => Promise<Runner>;
  readonly tracking: (runner: Runner) => Promise<Tracking>;
  /** A page of its agent. */
  readonly page: (path: string) => Promise<string>;
  /** The end of its agent's log; absent: there is no way to it. */
  readonly log?: (previous: boolean) => Promise<string>;
}

/** The files of one node, by their paths, the most needed first. */
export interface NodeFiles {
  readonly files: ReadonlyMap<string, string>;
  readonly missing: readonly Missing[];
}

/** Settings that say how many connections there are and may be, alongside what the commands ask for. */
const SETTINGS = ["nf_conntrack_count", "nf_conntrack_max", "nf_conntrack_acct"] as const;

/** Asks a node for everything at once; what is not there when the signal aborts is missing. */
export async function nodeFiles(node: DumpedNode, signal: AbortSignal): Promise<NodeFiles> {
  const files = new Map<string, string>();
  const missing: Missing[] = [];
  const part = async (what: string, work: () => Promise<void>): Promise<void> => {
    try {
      await untilAborted(work(), signal);
    } catch (error) {
      missing.push({ what, why: withoutSecrets(errorText(error)) });
    }
  };
  const runs: RecordedRun[] = [];
  await Promise.all([
    part("kernel", async () => {
      const runner = until(await node.runner(), signal);
      await readKernel(recordingRunner(runner, (run) => void runs.push(run)));
      await part("connections", async () => {
        const counts: ConnectionCounts = await countConnections(await node.tracking(runner));
        files.set(PATHS.connections(node.name), `${JSON.stringify(counts, undefined, 2)}\n`);
      });
    }),
    ...PAGE_PATHS.map((path) =>
      part(`agent ${path}`, async () => {
        const kept = keptPage(path, await node.page(path));
        if (kept === undefined) throw new Error("its form is not known");
        files.set(PATHS.page(node.name, path), kept);
      }),
    ),
    ...logParts(node, files, part),
  ]);
  return { files: new Map([...kernelFiles(node.name, runs), ...files]), missing };
}

async function readKernel(runner: Runner): Promise<void> {
  await nodeAddresses(runner);
  // A family that the host does not have is an answer as well, and so is what cannot be parsed.
  for (const family of IP_FAMILIES) {
    await liveRules(runner, family).catch(() => undefined);
    await liveEnvironment(runner, family).catch(() => undefined);
  }
  await isTcpLiberal(runner);
  const asked = [
    ...SETTINGS.map((name) => ["cat", `/proc/sys/net/netfilter/${name}`] as const),
    ["uname", "-rm"] as const,
    ["iptables", "--version"] as const,
  ];
  for (const argv of asked) await runner.run(argv).catch(() => undefined);
}

function logParts(
  { name, log }: DumpedNode,
  files: Map<string, string>,
  part: (what: string, work: () => Promise<void>) => Promise<void>,
): readonly Promise<void>[] {
  if (log === undefined) return [];
  return [
    part("log", async () => void files.set(PATHS.log(name), withoutSecrets(await log(false)))),
    // Most containers are the first of their pod.
    log(true).then(
      (text) => void (text !== "" && files.set(PATHS.previousLog(name), withoutSecrets(text))),
      () => undefined,
    ),
  ];
}

function kernelFiles(node: string, runs: readonly RecordedRun[]): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  const entries: RunEntry[] = [];
  for (const run of runs) {
    const kept = keptRun(run);
    if (kept === undefined) continue;
    if ("failure" in kept) {
      const { reason, exitCode, stderr = "" } = kept.failure;
      entries.push({ argv: kept.argv, failure: { reason, stderr, ...(exitCode !== undefined && { exitCode }) } });
      continue;
    }
    const file = runFile(kept.argv);
    entries.push({ argv: kept.argv, file });
    files.set(PATHS.run(node, file), kept.stdout);
  }
  if (entries.length > 0) files.set(PATHS.runs(node), `${JSON.stringify(entries, undefined, 1)}\n`);
  return files;
}

/** All programs end with the signal. */
function until(runner: Runner, signal: AbortSignal): Runner {
  const own = <O extends RunOptions | StreamOptions>(options: O | undefined) => ({ signal, ...options });
  return {
    run: (argv, options) => runner.run(argv, own(options)),
    stream: (argv, options) => runner.stream(argv, own(options)),
  };
}

function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new Error("no answer in time"));
    if (signal.aborted) late();
    signal.addEventListener("abort", late, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener("abort", late));
  });
}
