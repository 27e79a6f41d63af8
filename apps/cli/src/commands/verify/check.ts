/** Compares one family's kernel with its plan. */

import { FLOWTABLE, tableName } from "@fairlead/backend-nftables";
import { inSlices } from "@fairlead/base";
import { type AgentConfig, whyNotAuto } from "@fairlead/config";
import type { ForwardingPlan, IPFamily, ServicePortGroup } from "@fairlead/core";
import {
  byService,
  compareIpvs,
  compareNftables,
  compareRules,
  dryRun,
  dryTables,
  type Finding,
  factsOf,
  hasForeignRules,
  type IpvsObjects,
  ipvsEnvironment,
  isKubeProxyTable,
  type PlannedNode,
  renamedServices,
  restored,
  type ServiceReport,
  servicesIn,
  servicesInTable,
  trafficFindings,
} from "@fairlead/inspect";
import type { NftTable } from "@fairlead/netfilter/nft";
import type { AgentSetup } from "../../inputs/agent.ts";
import { type HeldRules, hasCounters, ipvsObjectsIn, payloadIn } from "../../node/rules.ts";

/** With the addresses and routes of the host as its environment, nothing of a mode. */
export interface KernelContents extends HeldRules {
  /** The node lets packets in state INVALID through; absent: unknown. */
  readonly tcpBeLiberal?: boolean;
  /** What the mode programs alongside rules; absent: nothing. */
  readonly objects?: IpvsObjects;
  /** Names of the devices that the agent has on the fast path; absent: none, or they are not known. */
  readonly fastPathDevices?: ReadonlySet<string>;
}

/** Compares one family's kernel with its plan, in slices, so that a server serves others meanwhile. */
export async function check(
  { planner, mode, options }: PlannedNode,
  { config }: Pick<AgentSetup, "config">,
  family: IPFamily,
  held: KernelContents,
): Promise<Omit<FamilyReport, "family">> {
  const plan = planner.plan(family);
  const { tcpBeLiberal = config.conntrack.tcpBeLiberal } = held;
  const own = held.nftables.find(({ name }) => name === tableName(config.serviceProxyName));
  const fastPath = comparedFastPath(config, own, held.fastPathDevices);
  const settings = { mode, config: fastPath.config, counters: hasCounters(held.ruleSet), tcpBeLiberal };
  const tables = await inSlices(dryTables(plan, settings));
  // A mode that has tables says nothing else.
  const texts = tables.length > 0 ? [] : await dryRun(plan, settings);
  const expected = await inSlices(restored(payloadIn(texts), family));
  const objects = ipvsObjectsIn(texts);
  const structure = [
    ...(await inSlices(compareRules(expected, held.ruleSet))),
    ...(await inSlices(compareTables(tables, held.nftables))),
    ...fastPath.findings,
    ...(held.objects === undefined ? [] : compareIpvs(objects, held.objects, { serviceOf: servicesAt(plan) })),
  ];
  const found = {
    ...held,
    environment: held.objects === undefined ? held.environment : ipvsEnvironment(held.environment, held.objects),
  };
  const hasOthers = hasForeignRules(expected, held.ruleSet) || hasOtherTables(tables, held.nftables);
  const { semantics } = factsOf(mode);
  const findings = await byMeaning(structure, plan, hasOthers, (groups) =>
    inSlices(trafficFindings(groups, plan.node, found, options.nodeIPs[family], semantics)),
  );
  const unknown = findings.filter(({ kind }) => kind === "unknown");
  const notes = findings.filter(({ others }) => others === true);
  const differences = findings.filter(({ kind, others }) => kind !== "unknown" && others === undefined);
  const noted = {
    ...(fastPath.note !== undefined && { fastPath: fastPath.note }),
    ...(notes.length > 0 && { notes }),
    ...(unknown.length > 0 && { unknown }),
  };
  const names = new Set(Array.from(plan.groups.values(), ({ name }) => name));
  const planned = names.size;
  if (differences.length === 0) return { planned, services: [], ...noted };
  return { planned, services: byService(differences, names, await present(plan, tables, held)), ...noted };
}

export interface FamilyReport {
  readonly family: IPFamily;
  readonly planned: number;
  readonly services: readonly ServiceReport[];
  /** What others' rules do, and no difference; absent: nothing that is known. */
  readonly notes?: readonly Finding[];
  /** What is worth knowing of the fast path, and no difference; absent: nothing. */
  readonly fastPath?: string;
  /** Packets of which it is not known where they end; absent: there are none. */
  readonly unknown?: readonly Finding[];
}

interface ComparedFastPath {
  /** The configuration that the table was made by. */
  readonly config: AgentConfig;
  /** What is worth knowing, and no difference; absent: nothing. */
  readonly note?: string;
  readonly findings: readonly Finding[];
}

/**
 * An agent writes the table as without the option where the kernel has not passed the test of its flowtables.
 *
 * @param found the table of nftables that the agent programs; undefined: there is none
 * @param wanted names of the devices that the agent chooses; undefined: they are not known
 */
export function comparedFastPath(
  config: AgentConfig,
  found: NftTable | undefined,
  wanted: ReadonlySet<string> | undefined,
): ComparedFastPath {
  const { fastPath, ...others } = config.nftables;
  if (fastPath === undefined || found === undefined) return { config, findings: [] };
  const flowtable = found.flowtables?.get(FLOWTABLE);
  if (flowtable === undefined) {
    const note = "the fast path is configured and disabled on this node; `fairlead doctor` says why";
    return { config: { ...config, nftables: others }, note, findings: [] };
  }
  const unknown = whyNotAuto(config);
  if (unknown !== undefined)
    return { config, note: `the flowtable's devices are not compared: ${unknown}`, findings: [] };
  if (wanted === undefined) return { config, findings: [] };
  const there = new Set(flowtable.devices);
  const finding = (kind: Finding["kind"]) => (name: string) => ({
    kind,
    where: `flowtable ${FLOWTABLE}`,
    what: `device ${name}`,
  });
  const missing = [...wanted].filter((name) => !there.has(name));
  const extra = [...there].filter((name) => !wanted.has(name));
  return { config, findings: [...missing.map(finding("missing")), ...extra.map(finding("extra"))] };
}

function* compareTables(
  tables: readonly NftTable[],
  found: readonly NftTable[],
): Generator<void, readonly Finding[], void> {
  const findings: (readonly Finding[])[] = [];
  for (const table of tables) findings.push(yield* compareNftables(table, tableNamed(found, table)));
  return findings.flat();
}

/** The services of which the kernel has anything, as the mode programs them. */
async function present(
  plan: ForwardingPlan,
  tables: readonly NftTable[],
  held: KernelContents,
): Promise<ReadonlySet<string>> {
  const own = tables.flatMap((table) => tableNamed(held.nftables, table) ?? []);
  if (tables.length > 0) return new Set(own.flatMap((table) => [...servicesInTable(table)]));
  return held.objects === undefined ? inSlices(servicesIn(held.ruleSet)) : servedBy(plan, held.objects);
}

function tableNamed(tables: readonly NftTable[], { name }: NftTable): NftTable | undefined {
  return tables.find((table) => table.name === name);
}

/**
 * A difference only in names does not count; what others' rules do to our traffic is.
 *
 * @param hasOthers rules of others are there, or kube-proxy's: packets to all services are followed
 */
async function byMeaning(
  structure: readonly Finding[],
  { groups }: ForwardingPlan,
  hasOthers: boolean,
  follow: (groups: readonly ServicePortGroup[]) => Promise<readonly Finding[]>,
): Promise<readonly Finding[]> {
  const renamed = renamedServices(structure);
  const traffic = await follow([...groups.values()].filter(({ name }) => hasOthers || renamed.has(name)));
  const changed = new Set(
    traffic.flatMap(({ kind, service, others }) => (others || kind === "unknown" ? [] : [service])),
  );
  const known = new Set(structure.map(({ service }) => service));
  return [
    ...structure.filter(({ service }) => service === undefined || !renamed.has(service) || changed.has(service)),
    // Where rules differ they say more than the packets that meet them.
    ...traffic.filter(({ service }) => !known.has(service)),
  ];
}

/** Whether another program has nftables tables, or kube-proxy has written the one that is expected. */
function hasOtherTables(expected: readonly NftTable[], actual: readonly NftTable[]): boolean {
  return actual.some((table) => tableNamed(expected, table) === undefined || isKubeProxyTable(table));
}

function servicesAt(plan: ForwardingPlan): (address: string, port?: number) => string | undefined {
  const services = new Map<string, string>();
  for (const { name, frontends, cluster } of plan.groups.values()) {
    for (const { address, port } of [...frontends, ...cluster]) {
      if (address === undefined) services.set(`port ${port}`, name);
      else for (const key of [`${address} ${port}`, address]) if (!services.has(key)) services.set(key, name);
    }
  }
  return (address, port) =>
    services.get(port === undefined ? address : `${address} ${port}`) ?? services.get(`port ${port ?? address}`);
}

function servedBy(plan: ForwardingPlan, { servers }: IpvsObjects): ReadonlySet<string> {
  const serviceAt = servicesAt(plan);
  const names = servers.map(({ address, port }) => serviceAt(address, port));
  return new Set(names.filter((name) => name !== undefined));
}
