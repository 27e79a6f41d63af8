import { parseArguments } from "@fairlead/config";
import { Memory } from "@fairlead/endpoint-filter";
import { filterSettings } from "@fairlead/intake";
import type { ObjectSource } from "@fairlead/watch";
import { type AgentSetup, type ConsoleOptions, type RunningConsole, startConsole } from "../../src/index.ts";

/** The agents of `shop`. */
function shopSetup(): AgentSetup {
  const flags = ["--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16"];
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error("these flags are good");
  const filter = filterSettings(parsed.config);
  if (!filter.ok) throw new Error(filter.errors.join());
  return { mode: "iptables", config: parsed.config, filter: filter.options, memory: Memory.empty };
}

/** A console that ends with the block it is used in. */
export async function openConsole(
  source: ObjectSource,
  html: string,
  more: Partial<ConsoleOptions> = {},
): Promise<RunningConsole & AsyncDisposable> {
  const stop = new AbortController();
  const options = { html, port: 0, version: "0.0.0", sourceName: "manifests shop.yaml", source, setup: shopSetup() };
  const running = await startConsole({ ...options, nodeName: "node-a", ...more }, stop.signal);
  return {
    ...running,
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await running.ended;
      await running.close();
    },
  };
}
