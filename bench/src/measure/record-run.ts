import { mkdtemp, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { COUNTERS } from "@fairlead/backend-iptables";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { runnerIn } from "@fairlead/lab/wire";
import {
  fairlead,
  loopFigures,
  loopProbe,
  type MeasuredProxy,
  recordingPath,
  type Variant,
} from "../proxy/measured-proxy.ts";
import { startProxy } from "../proxy/running.ts";
import { type Setting, Workload } from "./measure-run.ts";
import { childrenCpuSeconds } from "./process-figures.ts";
import { median, type RecordedFigures, type ToolUse } from "./result.ts";

/** Changes that are recorded; even, as the endpoint goes to and fro. */
const CHANGES = 6;
const BARE_CHANGES = 20;
const PATIENCE_MS = 30 * 60_000;

/** Counts what a proxy asks of the tools, and times the tools by themselves with the text of ours. */
export async function recordRun(setting: Setting, subject: MeasuredProxy): Promise<RecordedFigures> {
  const { bed, size, startSettings } = setting;
  const folder = await mkdtemp(join(bed.folder, `records-${subject.name}-`));
  const records = join(folder, "calls");
  const path = await recordingPath(join(folder, "bin"), startSettings.variant, records);
  const loopFile = join(folder, "loop");
  const probed = subject.name === "fairlead" ? fairlead(await loopProbe(loopFile)) : subject;
  await using running = await startProxy(bed, { ...startSettings, subject: probed, path });
  const calls = new Calls(records);
  const start = await calls.sinceLast();
  const work = new Workload(bed.controlPlane.api, size, PATIENCE_MS);
  await work.swapEndpoint(running, 2);
  await calls.sinceLast();
  await work.swapEndpoint(running, CHANGES);
  const change = await calls.sinceLast();
  await running.stop();
  await work.restore(0);
  // Without text there is nothing that the tools alone could be given.
  const own = subject.name === "fairlead" &&
    change.payloads.length > 0 && {
      bare: {
        ...(await bareChanges(running.node, startSettings.variant, change.payloads.slice(-2))),
        ...(await bareStart(setting, start.payloads)),
      },
    };
  const loop = await loopFigures(loopFile);
  const each = (total: number) => total / CHANGES;
  return {
    start: { processes: start.use.processes, bytes: start.use.bytes },
    endpointChange: { processes: each(change.use.processes), bytes: each(change.use.bytes) },
    ...(loop && { longestBlockMs: loop.wall, longestTurnCpuMs: loop.cpu }),
    ...own,
  };
}

interface Recorded {
  readonly use: ToolUse;
  /** Files with the input of each restore, in order. */
  readonly payloads: readonly Payload[];
}

interface Payload {
  readonly tool: string;
  readonly file: string;
}

/** The calls that the recording tools have left in a folder. */
class Calls {
  readonly #folder: string;
  #seen = 0;

  constructor(folder: string) {
    this.#folder = folder;
  }

  async sinceLast(): Promise<Recorded> {
    const text = await readFile(join(this.#folder, "calls"), "utf8").catch(() => "");
    const lines = text.split("\n").filter(Boolean);
    const fresh = lines.slice(this.#seen);
    this.#seen = lines.length;
    const files = new Set(await readdir(this.#folder));
    const payloads: Payload[] = [];
    let bytes = 0;
    for (const line of fresh) {
      const [pid = "", program = ""] = line.split(" ");
      if (!files.has(`payload.${pid}`)) continue;
      const file = join(this.#folder, `payload.${pid}`);
      bytes += (await stat(file)).size;
      payloads.push({ tool: program, file });
    }
    return { use: { processes: fresh.length, bytes }, payloads };
  }
}

/** All restores of a start on an empty node, one after the other. */
async function bareStart({ bed, startSettings }: Setting, payloads: readonly Payload[]) {
  await using node = await bed.openNode();
  // Proxies count with them where the kernel can; the text names them then.
  for (const name of COUNTERS)
    await runnerIn(node)
      .run(["nfacct", "add", name])
      .catch(() => {});
  const cpuBefore = await childrenCpuSeconds(process.pid);
  const started = performance.now();
  for (const payload of payloads) await restore(node, startSettings.variant, payload);
  const startMs = performance.now() - started;
  return { startMs, startCpu: (await childrenCpuSeconds(process.pid)) - cpuBefore };
}

/** The restores of two changes that undo each other, over and over alongside the rules that are there. */
async function bareChanges(node: NetworkNamespace, variant: Variant, pair: readonly Payload[]) {
  const times: number[] = [];
  const cpuBefore = await childrenCpuSeconds(process.pid);
  for (let round = 0; round < BARE_CHANGES / 2; round++) {
    for (const payload of pair) {
      const started = performance.now();
      await restore(node, variant, payload);
      times.push(performance.now() - started);
    }
  }
  const cpu = (await childrenCpuSeconds(process.pid)) - cpuBefore;
  return { endpointChangeMs: median(times), endpointChangeCpu: cpu / times.length };
}

async function restore(node: NetworkNamespace, variant: Variant, { tool, file }: Payload): Promise<void> {
  const family = tool.includes("ip6tables") ? "ip6tables" : "iptables";
  const argv = [`${family}-${variant}-restore`, "--noflush", "--counters", "-w", "5", file] as const;
  await runnerIn(node).run(argv, { timeoutMs: PATIENCE_MS });
}
