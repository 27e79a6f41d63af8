import { type Clock, IP_FAMILIES, sleep, systemClock } from "@fairlead/base";
import { type AgentConfig, type ShadowSettings, withMode } from "@fairlead/config";
import { Memory } from "@fairlead/endpoint-filter";
import { NodeEvents } from "@fairlead/intake";
import { createRunner, type KernelReader, openKernelReader, openTracking } from "@fairlead/kernel";
import { version } from "../about/version.ts";
import { localKernel } from "../host/local.ts";
import { sourceAddress } from "../host/source-address.ts";
import type { Log } from "../log/log.ts";
import { setUpNetworks } from "../networks/setup.ts";
import type { AgentParts } from "../run/parts.ts";
import { ShadowFamily } from "../shadow/family.ts";
import { type SeenMode, seenMode } from "../shadow/modes.ts";
import { COMPONENT, tellNews } from "../shadow/news.ts";
import { shadowView } from "../shadow/view.ts";
import { watchKernel } from "../shadow/watch.ts";
import { runToExit, startProcess } from "./run-process.ts";
import { openSource } from "./source.ts";

/** Milliseconds between two looks for a proxy that has not begun to serve. */
const PATIENCE_MS = 2_000;

/**
 * Runs alongside the proxy that serves this node (--shadow): plans as if it served, compares the kernel with the plan,
 * and changes nothing. It only reads the kernel. Resolves to the exit code.
 */
export async function runShadow(given: AgentConfig, shadow: ShadowSettings, log: Log): Promise<number> {
  const { stop, filter, nodeName, maxClients } = startProcess(given, log);
  const runner = createRunner();
  const kernel = openKernelReader(runner);
  log.info("Fairlead runs as a shadow; it programs nothing", { version: `v${version}`, pid: process.pid });
  const mode = await awaitMode(kernel, systemClock, log, stop);
  if (mode === undefined) return 0;
  const config = withMode(given, mode.name);
  log.info("Comparing with kube-proxy", { mode: mode.name, gracePeriod: `${shadow.gracePeriodMs}ms` });
  const { source, events: eventPort } = await openSource(config, nodeName, log);
  const clock = systemClock;
  const events = eventPort && new NodeEvents({ node: nodeName, component: COMPONENT, ...eventPort, clock, log });
  const onNews = tellNews(log, events);
  const families = IP_FAMILIES.map(
    (family) => new ShadowFamily({ family, mode, kernel, grace: shadow.gracePeriodMs, clock, onNews }),
  );
  const parts: AgentParts = {
    config,
    filter,
    networks: await setUpNetworks(config, filter, log),
    nodeName,
    kernel: { ...localKernel(), addresses: kernel.addresses, sourceAddress, tracking: () => openTracking(runner) },
    mode: mode.facts,
    removals: [],
    backends: new Map(families.map((family) => [family.family, family])),
    familiesAtOnce: true,
    unserved: new Map(),
    maxClients,
    memory: Memory.empty,
    shadow: shadowView(mode, families, shadow.gracePeriodMs),
    source,
    events,
    clock,
    log,
  };
  return run(parts, { kernel, mode, families }, stop);
}

async function run(
  parts: AgentParts,
  seen: { readonly kernel: KernelReader; readonly mode: SeenMode; readonly families: readonly ShadowFamily[] },
  stop: AbortSignal,
): Promise<number> {
  const { clock, log } = parts;
  const ended = new AbortController();
  const all = AbortSignal.any([stop, ended.signal]);
  let other = "";
  const onOtherMode = (name: string) => {
    other = `kube-proxy runs in ${name} mode now: ending, to be started again`;
    ended.abort();
  };
  const watching = watchKernel({ ...seen, clock, log, onOtherMode }, all);
  const code = await runToExit(parts, all, () => other);
  ended.abort();
  await watching;
  await seen.kernel.close();
  return code;
}

/** @returns undefined: stopped before there was a proxy */
async function awaitMode(
  kernel: KernelReader,
  clock: Clock,
  log: Log,
  stop: AbortSignal,
): Promise<SeenMode | undefined> {
  for (let logged = false; !stop.aborted; logged = true) {
    const found = await seenMode(kernel);
    if (found !== undefined) return found;
    if (!logged) log.warn("No rules of a proxy found on this node; waiting for kube-proxy");
    await sleep(clock, PATIENCE_MS, stop);
  }
  return undefined;
}
