import { FakeSockets } from "@fairlead/backend-userspace/fake";
import { familyOf } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import { type AgentConfig, parseArguments } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { Memory } from "@fairlead/endpoint-filter";
import { filterSettings, networksSettings } from "@fairlead/intake";
import type { WatchOptions } from "@fairlead/kernel";
import {
  FakeConntrack,
  FakeDevices,
  FakeIptables,
  FakeNfacct,
  FakeNftables,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
  Faults,
} from "@fairlead/kernel/fake";
import { renderRule } from "@fairlead/netfilter";
import { type LastKnown, NOTHING_KNOWN } from "@fairlead/networks";
import type { ObjectSource } from "@fairlead/watch";
import type { MetricFactory } from "../../src/metrics/registry.ts";
import { modes } from "../../src/modes/index.ts";
import type { AgentParts } from "../../src/run/parts.ts";
import { runAgent } from "../../src/run/run-agent.ts";
import { Progress } from "../../src/sync/follower.ts";
import { fakeIpvs } from "./fake-ipvs.ts";
import { modeOnFakes } from "./modes.ts";
import { recordedLog } from "./recorded-log.ts";
import { ScriptedSource } from "./scripted-source.ts";

export interface RunningAgentOptions {
  readonly flags?: readonly string[];
  /** Rules for services, which have no flag. */
  readonly serviceRules?: AgentConfig["multiCNI"]["serviceRules"];
  readonly families?: readonly IPFamily[];
  readonly memory?: Memory;
  /** What an agent before knew of learned networks. */
  readonly known?: LastKnown;
  readonly source?: ObjectSource;
  readonly clock?: VirtualClock;
  /** By name; default: iptables. */
  readonly mode?: string;
  readonly events?: AgentParts["events"];
  /** The families that this node cannot do, and why. */
  readonly unserved?: AgentParts["unserved"];
  /** The first listing of the node's addresses comes when this resolves; default: at once. */
  readonly addressesAfter?: Promise<void>;
  /** Of the metrics server; default: any that is free. */
  readonly metricsPort?: number;
  /** Of the health server; default: there is none. */
  readonly healthPort?: number;
}

/** A configuration with which two agents at once do not meet on ports and files. */
function configApart({ flags = [], metricsPort = 0, healthPort }: RunningAgentOptions): AgentConfig {
  const { healthzBindAddress: _none, ...config } = configOf(["--state-dir=/dev/null/none", ...flags]);
  const at = (port: number) => ({ address: "127.0.0.1", port });
  return {
    ...config,
    metricsBindAddress: at(metricsPort),
    ...(healthPort === undefined ? {} : { healthzBindAddress: at(healthPort) }),
  };
}

export function configOf(flags: readonly string[]): AgentConfig {
  const parsed = parseArguments(flags, { readFile: () => "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

export type RunningAgent = ReturnType<typeof runningAgent>;

/** A whole agent in this process, on kernels in memory and in virtual time. */
export function runningAgent(options: RunningAgentOptions = {}) {
  const { families = ["IPv4"], memory = Memory.empty, clock = new VirtualClock(), mode = "iptables" } = options;
  const { ipvs, modules } = fakeIpvs();
  const given = configApart(options);
  const { serviceRules = [] } = options;
  const config = { ...given, multiCNI: { ...given.multiCNI, serviceRules } };
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  const settings = networksSettings(config, filter.options);
  const faults = { IPv4: new Faults(clock), IPv6: new Faults(clock) };
  const nfacct = new FakeNfacct();
  const tables = {
    IPv4: new FakeIptables({ family: "IPv4", timers: clock, faults: faults.IPv4, nfacct, sets: ipvs.sets }),
    IPv6: new FakeIptables({ family: "IPv6", timers: clock, faults: faults.IPv6, nfacct, sets: ipvs.sets }),
  };
  const nftables = new FakeNftables({ faults: faults.IPv4, clock });
  const sockets = new FakeSockets();
  const progress = new Progress();
  const { facts, serve } = modeOnFakes(mode);
  const addresses = new FakeNodeAddresses([address("127.0.0.1", "host"), address("10.201.0.10")]);
  const conntrack = new FakeConntrack();
  const tracking = new FakeTracking();
  const scripted = new ScriptedSource();
  const log = recordedLog();
  const served = serve({ config, families, tables, ipvs, nfacct, nftables, log, sockets, progress, clock });
  let registry: MetricFactory["registry"] | undefined;
  const parts: AgentParts = {
    config,
    filter: filter.options,
    networks: settings && { settings, known: options.known ?? NOTHING_KNOWN },
    nodeName: "node-a",
    kernel: {
      iptables: async (family) => tables[family],
      iptablesInUse: async (family) => [tables[family]],
      ipvs,
      modules,
      addresses: {
        list: () => addresses.list(),
        watch: (wanted) => watchAfter(options.addressesAfter, addresses, wanted),
      },
      devices: new FakeDevices(),
      testFlowtable: async () => ({ outcome: "passed" }),
      conntrack,
      tracking: async () => tracking,
      nfacct,
      sysctl: new FakeSysctl(),
      nftables: async () => nftables,
      removeNftTables: async () => [],
      routing: new FakeRouting(),
      hasNftTable: async () => false,
      sourceAddress: async () => undefined,
    },
    mode: facts,
    removals: modes,
    ...served,
    addMetrics(make) {
      registry = make.registry;
      served.addMetrics?.(make);
    },
    unserved: options.unserved ?? new Map(),
    progress,
    memory,
    source: () => options.source ?? scripted,
    events: options.events,
    clock,
    log,
    random: () => 1,
  };
  const stop = new AbortController();
  const ended = runAgent(parts, stop.signal);
  return {
    clock,
    log,
    faults,
    tables,
    addresses,
    conntrack,
    tracking,
    nfacct,
    nftables,
    ipvs,
    sockets,
    source: scripted,
    ended,
    /** What Prometheus would read. */
    metrics: async () => (await registry?.metrics()) ?? "",
    /** The rules of KUBE chains in nat, `-A CHAIN …`, sorted. */
    nat: (family: IPFamily = "IPv4") => kubeRules(tables[family], "nat"),
    filter: (family: IPFamily = "IPv4") => kubeRules(tables[family], "filter"),
    async stop() {
      stop.abort();
      const ending = ended;
      for (let turn = 0; turn < 50; turn++) await settled();
      await clock.advance(2_000);
      return ending;
    },
  };
}

async function* watchAfter(first: Promise<void> | undefined, addresses: FakeNodeAddresses, wanted: WatchOptions) {
  await first;
  yield* addresses.watch(wanted);
}

export function address(text: string, scope = "global") {
  return { family: familyOf(text), address: text, prefixLength: 24, interface: "eth0", scope, up: true };
}

function kubeRules(tables: FakeIptables, table: "nat" | "filter"): string[] {
  return [...tables.table(table).chains.values()]
    .filter(({ name }) => name.startsWith("KUBE-"))
    .flatMap(({ name, rules }) => rules.map((rule) => `-A ${name} ${renderRule(rule)}`))
    .sort();
}
