/** A node in memory: its kernel, its agent's configuration and log. Nothing here needs a test to be running. */

import { VirtualClock } from "@fairlead/base/testing";
import { type AgentConfig, parseArguments } from "@fairlead/config";
import type { ForwardingPlan, IPFamily, NodePlan } from "@fairlead/core";
import { filterSettings } from "@fairlead/intake";
import {
  FakeConntrack,
  FakeDevices,
  FakeIpset,
  FakeIptables,
  FakeIpvsadm,
  FakeLinks,
  FakeModules,
  FakeNfacct,
  FakeNftables,
  FakeNodeAddresses,
  FakeRouting,
  FakeSysctl,
  FakeTracking,
  Faults,
} from "@fairlead/kernel/fake";
import type { Kernel } from "../../src/kernel.ts";
import type { Fields, Log } from "../../src/log.ts";
import type { FamilyOutcome } from "../../src/sync/family-sync.ts";
import type { FamilyRun } from "../../src/sync/follower.ts";

export function fakeIpvs({ supported = true }: { readonly supported?: boolean } = {}) {
  return {
    ipvs: { servers: new FakeIpvsadm({ supported }), sets: new FakeIpset(), links: new FakeLinks() },
    modules: new FakeModules(supported ? ["ip_vs", "ip_vs_rr", "nf_conntrack", "ip_set", "xt_set", "dummy"] : []),
  };
}

/**
 * A node's kernel that has everything, and its parts.
 *
 * @param own what it has of its own in place of those
 */
export function fakeKernel(own: Partial<Kernel> = {}, clock = new VirtualClock()) {
  const { ipvs, modules } = fakeIpvs();
  const faults = { IPv4: new Faults(clock), IPv6: new Faults(clock) };
  const [conntrack, tracking, nfacct] = [new FakeConntrack(), new FakeTracking(), new FakeNfacct()];
  const shared = { timers: clock, nfacct, sets: ipvs.sets };
  const tables = {
    IPv4: new FakeIptables({ family: "IPv4", faults: faults.IPv4, ...shared }),
    IPv6: new FakeIptables({ family: "IPv6", faults: faults.IPv6, ...shared }),
  };
  const nftables = new FakeNftables({ faults: faults.IPv4, clock });
  const kernel: Kernel = {
    iptables: async (family) => tables[family],
    iptablesInUse: async (family) => [tables[family]],
    ipvs,
    modules,
    addresses: new FakeNodeAddresses(),
    devices: new FakeDevices(),
    testFlowtable: async () => ({ outcome: "passed" }),
    conntrack,
    tracking: async () => tracking,
    nfacct,
    sysctl: new FakeSysctl({ "net/ipv6/conf/all/disable_ipv6": 0 }),
    nftables: async () => nftables,
    removeNftTables: async () => [],
    routing: new FakeRouting(),
    hasNftTable: async () => false,
    sourceAddress: async () => undefined,
    ...own,
  };
  return { kernel, faults, tables, nftables, ipvs, nfacct, conntrack, tracking };
}

export function emptyPlan(family: IPFamily = "IPv4", node: Partial<NodePlan> = {}): ForwardingPlan {
  return {
    family,
    groups: new Map(),
    node: { detector: { kind: "none" }, nodePortAddresses: { kind: "all" }, ...node },
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
    endpointCount: 0,
  };
}

/** What followers get of a sync that had nothing to write. */
export function runOf(outcome: FamilyOutcome, family: IPFamily = "IPv4"): FamilyRun {
  return { family, plan: emptyPlan(family), change: undefined, outcome };
}

/** Of a full sync that the kernel took. */
export const SYNCED: FamilyOutcome = { kind: "synced", report: { kind: "full", objects: {} }, milliseconds: 1 };

export function configOf(flags: readonly string[], files: Readonly<Record<string, string>> = {}): AgentConfig {
  const parsed = parseArguments(flags, { readFile: (path) => files[path] ?? "", version: "0.0.0" });
  if (parsed.kind !== "run") throw new Error(JSON.stringify(parsed));
  return parsed.config;
}

export function filterOf(config: AgentConfig) {
  const filter = filterSettings(config);
  if (!filter.ok) throw new Error(filter.errors.join("\n"));
  return filter.options;
}

/** Of one context, which is the current one. */
export function kubeconfigOf(cluster: object, user: object = {}): string {
  return JSON.stringify({
    apiVersion: "v1",
    kind: "Config",
    "current-context": "a",
    clusters: [{ name: "a", cluster }],
    users: [{ name: "a", user }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  });
}

export interface Line {
  readonly level: "info" | "warn" | "error" | "verbose";
  readonly message: string;
  readonly fields: Fields;
}

export function recordedLog(): Log & { readonly lines: Line[]; messages(level?: Line["level"]): string[] } {
  const lines: Line[] = [];
  const keep =
    (level: Line["level"]) =>
    (message: string, fields: Fields = {}) => {
      lines.push({ level, message, fields });
    };
  return {
    lines,
    messages: (level) =>
      lines.filter((line) => level === undefined || line.level === level).map((line) => line.message),
    info: keep("info"),
    warn: keep("warn"),
    error: keep("error"),
    verbose: (_verbosity, message, fields) => keep("verbose")(message, fields),
  };
}
