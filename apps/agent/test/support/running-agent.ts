/** A whole agent in a test's process, on a node in memory and in virtual time. */

import { FakeSockets } from "@fairlead/backend-userspace/fake";
import { familyOf } from "@fairlead/base";
import { settled, VirtualClock } from "@fairlead/base/testing";
import type { AgentConfig } from "@fairlead/config";
import type { IPFamily } from "@fairlead/core";
import { Memory } from "@fairlead/endpoint-filter";
import { networksSettings } from "@fairlead/intake";
import type { WatchOptions } from "@fairlead/kernel";
import { type FakeIptables, FakeNodeAddresses } from "@fairlead/kernel/fake";
import { renderRule } from "@fairlead/netfilter";
import { type LastKnown, NOTHING_KNOWN } from "@fairlead/networks";
import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";
import type {
  ObjectKey,
  ObjectSource,
  OtherState,
  OtherSubscription,
  Subscription,
  Subscriptions,
} from "@fairlead/watch";
import { onTestFinished } from "vitest";
import type { MetricFactory } from "../../src/metrics/registry.ts";
import { modes } from "../../src/modes/index.ts";
import type { AgentParts } from "../../src/run/parts.ts";
import { runAgent } from "../../src/run/run-agent.ts";
import { Progress } from "../../src/sync/follower.ts";
import { configOf, fakeKernel, filterOf, recordedLog } from "./fake-node.ts";

export const nodeA = node("node-a", { zone: "z1", addresses: ["10.201.0.10"] });
export const web = service("web", { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] });
export const webNodePort = service("web", {
  type: "NodePort",
  clusterIPs: ["10.96.67.75"],
  ports: [{ port: 80, nodePort: 30_080 }],
});
export const healthChecked = (healthCheckNodePort: number) =>
  service("web", {
    type: "LoadBalancer",
    clusterIPs: ["10.96.67.75"],
    ports: [{ port: 80 }],
    externalTrafficPolicy: "Local",
    healthCheckNodePort,
  });
export const ovn = service("ovn", { clusterIPs: ["10.96.95.98"], ports: [{ port: 80 }] });

/** The only slice of a Service with port 80. */
export function slice(name: string, ...addresses: readonly string[]) {
  const endpoints = addresses.map((each) => ({ address: each }));
  return endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port: 80 }], endpoints });
}

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

export type RunningAgent = Awaited<ReturnType<typeof runningAgent>>;

/** A whole agent, which ends with the test if it does not before. */
export async function runningAgent(options: RunningAgentOptions = {}) {
  const { families = ["IPv4"], memory = new Memory(), clock = new VirtualClock(), mode = "iptables" } = options;
  const addresses = new FakeNodeAddresses([address("127.0.0.1", "host"), address("10.201.0.10")]);
  const { kernel, ...fakes } = fakeKernel(
    {
      addresses: {
        list: () => addresses.list(),
        watch: (wanted) => watchAfter(options.addressesAfter, addresses, wanted),
      },
    },
    clock,
  );
  const given = configApart(options);
  const config = { ...given, multiCNI: { ...given.multiCNI, serviceRules: options.serviceRules ?? [] } };
  const filter = filterOf(config);
  const settings = networksSettings(config, filter);
  const [sockets, progress, scripted, log] = [new FakeSockets(), new Progress(), new ScriptedSource(), recordedLog()];
  const found = modes.find(({ facts }) => facts.name === mode);
  if (found === undefined) throw new Error(`no mode ${mode}`);
  const system = { clock, open: sockets.open };
  const served = await found.serve({ config, families, kernel, log, progress, system });
  let registry: MetricFactory["registry"] | undefined;
  const parts: AgentParts = {
    config,
    filter,
    networks: settings && { settings, known: options.known ?? NOTHING_KNOWN },
    nodeName: "node-a",
    kernel,
    mode: found.facts,
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
  const agent = {
    clock,
    log,
    ...fakes,
    addresses,
    sockets,
    source: scripted,
    ended,
    async list(...objects: readonly RawObject[]) {
      await settled();
      await scripted.put(...objects);
      await scripted.synced("services", "endpointSlices", "node");
    },
    async serve(...objects: readonly RawObject[]) {
      await agent.list(nodeA, ...objects);
      await clock.advance(5_000);
    },
    metrics: async () => (await registry?.metrics()) ?? "",
    /** The rules of KUBE chains in nat, `-A CHAIN …`, sorted. */
    nat: (family: IPFamily = "IPv4") => kubeRules(fakes.tables[family], "nat"),
    filter: (family: IPFamily = "IPv4") => kubeRules(fakes.tables[family], "filter"),
    /** How often something was written with iptables. */
    restores: () => fakes.faults.IPv4.calls.filter(({ argv: [program] }) => program.endsWith("-restore")).length,
    async stop() {
      stop.abort();
      const ending = ended;
      for (let turn = 0; turn < 50; turn++) await settled();
      await clock.advance(2_000);
      return ending;
    },
  };
  onTestFinished(async () => void (await agent.stop()));
  return agent;
}

/** Turns the event loop and virtual time long enough for what is under way to show. */
export async function aWhile(clock: VirtualClock): Promise<void> {
  for (let turn = 0; turn < 300; turn++) {
    await clock.advance(100);
    await settled();
  }
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

type Name = Exclude<keyof Subscriptions, "others">;

const RESOURCES: Readonly<Record<string, Name>> = {
  Service: "services",
  EndpointSlice: "endpointSlices",
  Node: "node",
  ServiceCIDR: "serviceCIDRs",
};

/** A source of objects that does what a test scripts, in that order. */
export class ScriptedSource implements ObjectSource {
  #subscriptions: Subscriptions = {};
  readonly #given = new Set<string>();

  async run<S, E, N, C>(subscriptions: Subscriptions<S, E, N, C>, signal: AbortSignal): Promise<void> {
    this.#subscriptions = erased(subscriptions);
    const { promise, resolve } = Promise.withResolvers<void>();
    signal.addEventListener("abort", () => resolve());
    await promise;
  }

  async put(...objects: readonly RawObject[]): Promise<void> {
    for (const raw of objects) {
      const subscription = this.#of(raw.kind);
      const object = subscription.decode(raw);
      const key = objectKey(raw);
      if (object === undefined) await this.remove(raw);
      else await subscription.onChange({ type: "upsert", key, object });
      if (object !== undefined) this.#given.add(`${raw.kind} ${key}`);
    }
  }

  async remove(...objects: readonly RawObject[]): Promise<void> {
    for (const raw of objects) {
      if (!this.#given.delete(`${raw.kind} ${objectKey(raw)}`)) continue;
      await this.#of(raw.kind).onChange({ type: "delete", key: objectKey(raw) });
    }
  }

  /** The first lists of these are complete. */
  async synced(...names: readonly Name[]): Promise<void> {
    for (const name of names) await this.#subscriptions[name]?.onChange({ type: "synced" });
    if (names.includes("node")) for (const other of this.#others("Node")) await other.onChange({ type: "synced" });
  }

  /** What the server says of the other resources of this kind; with `listed` their first list is complete, too. */
  async state(kind: string, state: OtherState): Promise<void> {
    for (const other of this.#others(kind)) {
      if (state === "listed") await other.onChange({ type: "synced" });
      other.onState(state);
    }
  }

  #others(kind: string): readonly OtherSubscription[] {
    return (this.#subscriptions.others ?? []).filter(({ resource }) => resource.kind === kind);
  }

  #of(kind: string): Subscription<unknown> {
    const resource = RESOURCES[kind];
    const subscription = resource === undefined ? this.#others(kind)[0] : this.#subscriptions[resource];
    if (subscription === undefined) throw new Error(`nothing follows ${kind}`);
    return subscription;
  }
}

function objectKey({ metadata }: RawObject): ObjectKey {
  return `${metadata.namespace ?? ""}/${metadata.name}`;
}

/** The consumer gets back only what its own `decode` made, so the type of the objects does not matter in between. */
function erased(subscriptions: object): Subscriptions {
  return subscriptions;
}
