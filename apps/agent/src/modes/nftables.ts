/** nftables mode. */

import {
  configuredOptions,
  createNftablesBackend,
  loopbackRefusalChain,
  type NftablesPort,
  nftablesFacts,
  type TableNews,
  tableName,
} from "@fairlead/backend-nftables";
import { errorChainText, toEnd } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type ForwardingPlan,
  type IPFamily,
  type ModeSemantics,
  Planner,
} from "@fairlead/core";
import { isAtLeast, type KernelVersion, kernelVersion, type NftablesClient } from "@fairlead/kernel";
import { NFT_FAMILY, type NftFamily } from "@fairlead/netfilter/nft";
import { type FastPath, openFastPath, testedKernel } from "../fast-path.ts";
import type { Kernel } from "../kernel.ts";
import type { Log } from "../log.ts";
import { addFastPathMetrics, addLoopbackMetrics, type RefusedPackets } from "../metrics/part-metrics.ts";
import type { ForeignChanges, Mode, ModeContext, ModeRuntime, OpenedFor } from "./mode.ts";
import { loopbackRelays, withRelays } from "./node-port-relays.ts";

/** kube-proxy's: what is set in it lets older kernels than it asks for be tried. */
const SKIP_VERSION = "KUBE_PROXY_NFTABLES_SKIP_KERNEL_VERSION_CHECK";

const PROTOCOLS = ["TCP", "UDP", "SCTP"] as const;

/** A range for documentation of each family (RFC 5737, RFC 3849), and how its addresses begin. */
const RANGES = {
  IPv4: { all: "198.51.100.0/24", from: "198.51.100." },
  IPv6: { all: "2001:db8::/64", from: "2001:db8::" },
} as const;

export const nftablesMode: Mode = {
  facts: nftablesFacts,
  whyNot,
  open,
  prepare,
  serve,
  removeTables: (kernel, serviceProxyName) => kernel.removeNftTables(serviceProxyName),
};

/**
 * Alongside what the kernel itself can do: the nft tool of distributions with older kernels fails over what this mode
 * writes, and then its other users fail, too (kubernetes/kubernetes#122743).
 *
 * @param skip not empty: the operator has made sure of that tool
 */
export function whyTooOld(version: KernelVersion, skip = ""): string | undefined {
  if (isAtLeast(version, 5, 13) || skip !== "") return undefined;
  return `it needs Linux 5.13 or later, and this is ${version.release}; ${SKIP_VERSION}=1 has it tried`;
}

/**
 * @param client is kept
 * @param fastPath absent: all packets meet all rules
 */
export function servingBy(
  client: NftablesClient,
  { config, families, log, progress, system }: Omit<ModeContext, "kernel">,
  { fastPath }: { readonly fastPath?: FastPath } = {},
): ModeRuntime {
  const table = tableName(config.serviceProxyName);
  const tables = new WatchedTables(client, table, log);
  const relays = loopbackRelays(config, families, log, system);
  const backends = families.map((family) => {
    const backend = createNftablesBackend(tables.port, {
      ...configuredOptions(config),
      fastPath: fastPath !== undefined,
      devices: () => fastPath?.devices ?? NO_DEVICES,
      deviceName: (index) => fastPath?.nameOf(index),
      onRefusedDevice: refusedDevice(family, log),
      family,
      turn: progress.turnOf(family),
      onForgottenClients: forgottenClients(family, table, log),
      ...(system && { clock: system.clock }),
    });
    return { family, backend, served: withRelays(backend, relays.families.get(family)) };
  });
  const updateDevices = async () => {
    for (const { backend } of backends) await backend.updateDevices();
  };
  return {
    backends: new Map(backends.map(({ family, served }) => [family, served])),
    familiesAtOnce: nftablesFacts.familiesAtOnce,
    async watchForeign(notify, signal) {
      await Promise.all([tables.watch(notify, signal), fastPath?.follow(updateDevices, signal)]);
    },
    relaying: relays.relaying,
    addMetrics(make) {
      if (config.nftables.fastPath !== undefined) addFastPathMetrics(make, () => fastPath?.devices.size ?? 0);
      if (config.features.nftLocalhostNodePorts)
        addLoopbackMetrics(make, relays.families, refusedPackets(client, table, families));
    },
  };
}

/** A plan with everything that services can ask of the kernel in a mode, made as plans of clusters are. */
export function probePlan(family: IPFamily, semantics: ModeSemantics): ForwardingPlan {
  const { all, from } = RANGES[family];
  const planner = new Planner({
    nodeName: "probe",
    families: [family],
    nodeIPs: {},
    detectors: { [family]: { kind: "cidrs", cidrs: [all] } },
    nodePortAddresses: { [family]: { kind: "list", addresses: [`${from}9`] } },
    serviceCIDRs: { [family]: [all] },
    masqueradeAll: false,
    resetStaleTCP: true,
    semantics,
  });
  toEnd(planner.replan(probeState(family, all, from), "all", { get: () => undefined }));
  return planner.plan(family);
}

async function whyNot(_: AgentConfig, kernel: Pick<Kernel, "nftables">): Promise<string | undefined> {
  const old = whyTooOld(kernelVersion(), process.env[SKIP_VERSION]);
  if (old !== undefined) return old;
  try {
    await kernel.nftables();
    return undefined;
  } catch (error) {
    return `nf_tables cannot be reached by netlink: ${errorChainText(error)}`;
  }
}

/**
 * Has the kernel check a table with everything that this mode writes, and write none of it: what is missing shows only
 * when it is used. Modules are loaded by the kernel itself.
 */
async function open(kernel: Kernel, family: IPFamily, { serviceProxyName }: OpenedFor): Promise<void> {
  const client = await kernel.nftables();
  try {
    await createNftablesBackend(dryPort(client), { family, serviceProxyName }).sync(
      probePlan(family, nftablesFacts.semantics),
    );
  } catch (error) {
    throw new Error(
      "the kernel refuses what nftables mode writes; it needs NET_ADMIN, Linux 5.13 or later and the modules nf_tables, " +
        "nft_chain_nat, nft_nat, nft_masq, nft_ct, nft_fib, nft_numgen, nft_reject",
      { cause: error },
    );
  }
}

/** Everything that would be written is only checked. */
function dryPort(client: NftablesClient): NftablesPort {
  return {
    commit: (batch) => client.check(batch),
    roomFor: (wanted) => client.roomFor(wanted),
    generation: () => client.generation(),
    table: (family, name) => client.table(family, name),
    sets: (family, table, wanted) => client.sets(family, table, wanted),
  };
}

async function serve(node: ModeContext): Promise<ModeRuntime> {
  const client = await node.kernel.nftables();
  const { notice, ...found } = await openFastPath(client, node);
  return { ...servingBy(client, node, found), notice };
}

/** Notes how the kernel's flowtables do in their test: --init-only may have rights that the agent has not. */
async function prepare(config: AgentConfig, kernel: Kernel, log: Log): Promise<void> {
  if (config.nftables.fastPath === undefined || config.action.kind === "run") return;
  await testedKernel({ config, kernel, log });
}

/** What the table counts of node ports on loopback addresses; of what it does not refuse there is no chain. */
function refusedPackets(
  client: NftablesClient,
  table: string,
  families: readonly IPFamily[],
): readonly RefusedPackets[] {
  return families.flatMap((family) =>
    PROTOCOLS.map((protocol) => ({
      family,
      protocol,
      read: () => client.counted(NFT_FAMILY[family], table, loopbackRefusalChain(protocol)),
    })),
  );
}

const NO_DEVICES: FastPath["devices"] = new Map();

function refusedDevice(family: IPFamily, log: Log): (device: string, reason: string) => void {
  return (device, reason) =>
    log.warn("Cannot add a device to the fast path; its packets meet all rules", { ipFamily: family, device, reason });
}

function forgottenClients(ipFamily: IPFamily, table: string, log: Log): (reason: Error) => void {
  return (reason) =>
    log.warn(
      `The table ${table} has sets that cannot be read: which endpoint a client with session affinity had is forgotten, and ` +
        "each is given one anew; all services are served",
      { ipFamily, reason: errorChainText(reason) },
    );
}

function probeState(family: IPFamily, all: string, from: string): ClusterState {
  const state = new ClusterState();
  const ports = (["TCP", "UDP", "SCTP"] as const).map((protocol, at) => ({
    name: protocol.toLowerCase(),
    protocol,
    port: 80,
    nodePort: 30_000 + at,
  }));
  const balanced = {
    type: "LoadBalancer",
    ports,
    sessionAffinity: "ClientIP",
    externalIPs: [`${from}2`],
    loadBalancerSourceRanges: [all],
  };
  const services = {
    empty: { clusterIP: `${from}5`, type: "NodePort", ports: [{ port: 80, nodePort: 30_010 }] },
    local: { clusterIP: `${from}6`, externalTrafficPolicy: "Local", ...balanced, externalIPs: [`${from}3`] },
    wide: { clusterIP: `${from}7`, ...balanced },
  };
  for (const [name, spec] of Object.entries(services)) {
    const metadata = { namespace: "probe", name };
    const status = { loadBalancer: { ingress: [{ ip: `${from}${spec.clusterIP.at(-1)}0` }] } };
    const service = decodeService({ metadata, spec, status }).object;
    if (service !== undefined) state.upsertService(service);
    const slice = decodeEndpointSlice(probeSlice(family, name, from)).object;
    if (slice !== undefined && name !== "empty") state.upsertSlice(slice);
  }
  return state;
}

function probeSlice(addressType: IPFamily, name: string, from: string) {
  return {
    metadata: { namespace: "probe", name, labels: { "kubernetes.io/service-name": name } },
    addressType,
    ports: ["TCP", "UDP", "SCTP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 8080 })),
    endpoints: [
      { addresses: [`${from}20`], nodeName: "probe", conditions: { ready: true } },
      { addresses: [`${from}21`], nodeName: "other", conditions: { ready: true } },
    ],
  };
}

/** Names of processes that are kept until they are asked for. */
const MOST_NAMES = 5;

/**
 * The agent's tables of both families, and what other processes do to them: their transactions on tables of their own
 * are no news.
 */
export class WatchedTables {
  readonly #client: NftablesClient;
  readonly #table: string;
  readonly #log: Log;
  readonly #touched: Record<NftFamily, { count: number; by: Set<string> }> = {
    ip: { count: 0, by: new Set() },
    ip6: { count: 0, by: new Set() },
  };
  #unreported = 0;
  /** Until it resolves, what others do would be missed; undefined: nothing is to be followed yet. */
  #listening: Promise<void> | undefined;

  /** @param table their name in each family */
  constructor(client: NftablesClient, table: string, log: Log) {
    this.#client = client;
    this.#table = table;
    this.#log = log;
  }

  get port(): NftablesPort {
    const client = this.#client;
    return {
      commit: async (batch) => {
        await this.#listening;
        await client.commit(batch);
      },
      roomFor: (wanted) => client.roomFor(wanted),
      generation: () => client.generation(),
      news: (family) => this.#news(family),
      table: (family, name) => client.table(family, name),
      sets: (family, table, wanted) => client.sets(family, table, wanted),
    };
  }

  /** Follows what others do to the tables until `signal` aborts; commits wait until it has begun, or cannot. */
  async watch(notify: ForeignChanges, signal: AbortSignal): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#listening = promise;
    const onProblem = (error: unknown) => {
      this.#log.warn("nftables event stream lost; every check compares all rules until it is back", {
        error: errorChainText(error),
      });
      this.#unreported++;
      resolve();
    };
    try {
      const options = { signal, tables: [this.#table], onListening: resolve, onProblem };
      for await (const news of this.#client.watch(options)) {
        if (news.kind === "lost") this.#unreported++;
        const by = news.kind === "lost" ? undefined : `${news.process.name} (${news.process.id})`;
        for (const { family, name } of news.tables) if (name === this.#table) this.#touch(family, by);
        notify.changed();
      }
    } finally {
      resolve();
    }
  }

  #touch(family: NftFamily, by: string | undefined): void {
    const touched = this.#touched[family];
    touched.count++;
    if (by !== undefined && touched.by.size < MOST_NAMES) touched.by.add(by);
  }

  #news(family: NftFamily): TableNews {
    const { count, by } = this.#touched[family];
    const news = { touched: count, unreported: this.#unreported, by: [...by] };
    by.clear();
    return news;
  }
}
