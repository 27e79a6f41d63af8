import { createIptablesBackend } from "@fairlead/backend-iptables";
import { createIpvsBackend, DEVICE } from "@fairlead/backend-ipvs";
import { IP_FAMILIES } from "@fairlead/base";
import type { Backend, EndpointFilter } from "@fairlead/core";
import { createEndpointFilter } from "@fairlead/endpoint-filter";
import { FakeIpset, FakeIptables, FakeIpvsadm, FakeLinks } from "@fairlead/kernel/fake";
import {
  type AgentOptions,
  alongsideExpected,
  type BackendsUnderTest,
  type ConformanceCase,
  clusterObjects,
  conformanceTable,
  ipvsEnvironment,
  nftablesRow,
  PlannedCluster,
  type RawObject,
} from "@fairlead/testkit";

export interface CaseGroup {
  readonly options: AgentOptions;
  readonly rows: readonly ConformanceCase[];
  /** The histories of all rows as one: each state is complete, the last is the last of every row. */
  readonly history: readonly (readonly RawObject[])[];
}

/** @param largest how many rows may share one cluster */
export function groupCases(rows: readonly ConformanceCase[], largest = LARGEST): readonly CaseGroup[] {
  const groups = Map.groupBy(rows, ({ options }) => JSON.stringify(options));
  return [...groups.values()]
    .flatMap((all) => inParts(all, largest))
    .flatMap((members) => {
      const options = members[0]?.options;
      return options === undefined ? [] : [{ options, rows: members, history: mergedHistory(members) }];
    });
}

/**
 * Takes a kernel through a group's history: the first state as a full sync, each later one as a change, as an agent
 * would have met them.
 *
 * @param backends in the order of `families`
 */
export async function syncGroup(group: CaseGroup, backends: readonly Backend[]): Promise<void> {
  const { options, history } = group;
  const [{ semantics } = {}] = backends;
  if (semantics === undefined) throw new Error("no family to program");
  const cluster = new PlannedCluster({ options, semantics, filter: filterFor(options) });
  for (const [index, state] of history.entries()) {
    const { changes } = cluster.advance(state);
    for (const [at, family] of IP_FAMILIES.entries()) {
      const backend = backends[at];
      const change = changes.get(family);
      if (index === 0) await backend?.sync(cluster.plan(family));
      else if (change) await backend?.apply(cluster.plan(family), change);
    }
  }
}

/**
 * The conformance table in nftables mode.
 *
 * @param serviceProxyName of the agent that serves, alongside a first proxy without a service; empty: it runs by itself
 * @param every of the rows that mean the same to an agent with a name as to a first proxy, one in so many
 */
export function nftTable(serviceProxyName: string, every: number): readonly ConformanceCase[] {
  const rows = conformanceTable.map(nftablesRow);
  if (serviceProxyName === "") return rows;
  return rows.flatMap((row, at) => {
    const nftables = alongsideExpected(row, { isFirst: false, refuses: "unknown ClusterIPs" });
    const isSame = JSON.stringify(nftables) === JSON.stringify(row.expected.nftables);
    return isSame && at % every !== 0 ? [] : [{ ...row, expected: { ...row.expected, nftables } }];
  });
}

/** A cluster without a service, of which the node's first proxy knows the ranges of ClusterIPs. */
export const EMPTY_CLUSTER = clusterObjects.filter(({ kind }) => kind === "Node" || kind === "ServiceCIDR");

/**
 * A plain user's netlink buffer ends at net.core.wmem_max, some 200 KB, and iptables-nft-restore sends a whole table at
 * once ("Message too long" from about 450 rules on): a cluster of this many rows stays below.
 */
const LARGEST = 25;

function inParts(rows: readonly ConformanceCase[], largest: number): readonly (readonly ConformanceCase[])[] {
  const parts = Math.ceil(rows.length / largest);
  return Array.from({ length: parts }, (_, part) => rows.slice(part * largest, (part + 1) * largest));
}

function mergedHistory(rows: readonly ConformanceCase[]): readonly (readonly RawObject[])[] {
  const length = Math.max(...rows.map(({ history }) => history.length));
  return Array.from({ length }, (_, index) => mergedState(rows, index));
}

/** A row whose history is shorter stays in its last state. */
function mergedState(rows: readonly ConformanceCase[], index: number): readonly RawObject[] {
  const objects = rows.flatMap(({ history }) => history[Math.min(index, history.length - 1)] ?? []);
  const keyOf = ({ kind, metadata }: RawObject) => `${kind} ${metadata.namespace ?? ""}/${metadata.name}`;
  return [...new Map(objects.map((object) => [keyOf(object), object])).values()];
}

export function filterFor(options: AgentOptions): EndpointFilter {
  return createEndpointFilter({ ...options, excludeCIDRs: options.excludeClusterCIDRs });
}

export function fakeIptables(variant: "nft" | "legacy"): BackendsUnderTest {
  return {
    filter: filterFor,
    open: (family, { localhostNodePorts }) => {
      const iptables = new FakeIptables({ family, variant });
      const backend = createIptablesBackend(iptables, { localhostNodePorts });
      return { backend, ruleSet: () => iptables.ruleSet() };
    },
  };
}

export const fakeIpvs: BackendsUnderTest = {
  filter: filterFor,
  open: (family) => {
    const servers = new FakeIpvsadm();
    const sets = new FakeIpset();
    const links = new FakeLinks();
    const rules = new FakeIptables({ family, variant: "legacy", sets });
    return {
      backend: createIpvsBackend({ servers, sets, links, rules }),
      ruleSet: () => rules.ruleSet(),
      environment: () =>
        ipvsEnvironment({ servers: servers.servers(), sets: sets.sets(), addresses: links.device(DEVICE) ?? [] }),
    };
  },
};
