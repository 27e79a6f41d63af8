/** The chains that are always there, and the base chains that lead into them. */

import { type Expression, type NftBatch, type NftChain, type NftRule, statements } from "@fairlead/netfilter/nft";
import {
  distinguishesClients,
  EXCLUDED,
  FOREIGN,
  LOOPBACK_REFUSALS,
  loopbackRefusalChain,
  type PlanContext,
  RESET_OR_DROP,
} from "./context.ts";
import { fastPathChains } from "./fast-path.ts";
import {
  baseChain,
  dispatch,
  excludedElements,
  firewallCheck,
  firewallHooks,
  frameElements,
  frameSets,
  LOOPBACK,
  nodePortDispatch,
} from "./frame-sets.ts";
import { markForMasquerading, notFromPods } from "./masquerade.ts";
import type { ElementChanges } from "./pools.ts";

/** kube-proxy's chains of fixed names with their rules, in its order. */
export function frameChains(context: PlanContext): readonly NftChain[] {
  return [
    ...baseChains(context),
    ...checks(context),
    services(context),
    masquerading(context),
    clusterIPsCheck(context),
    ...forwardCheck(context),
    reject(context),
    ...(context.resetStaleTCP ? [RESET_OR_DROP_CHAIN] : []),
    ...loopbackRefusals(context),
    ...fastPathChains(context),
  ];
}

/** Whether the chains that services share are the same in both, so that a change can go from one to the other. */
export function sharesChains(a: PlanContext, b: PlanContext): boolean {
  if (a === b) return true;
  const said = ({ family, mark, masqueradeAll, detector, nodePortAddresses, resetStaleTCP }: PlanContext) =>
    JSON.stringify([family, mark, masqueradeAll, detector, nodePortAddresses === "all", resetStaleTCP]);
  return said(a) === said(b);
}

/** Chains whose rules differ are written anew; sets come before the rules that use them. */
export function changeFrame(before: PlanContext, after: PlanContext, batch: NftBatch, elements: ElementChanges): void {
  if (before === after) return;
  const had = new Set(frameSets(before).map(({ name }) => name));
  const has = frameSets(after);
  for (const set of has) if (!had.has(set.name)) batch.addSet(set);
  const old = new Map(frameChains(before).map((chain) => [chain.name, chain]));
  for (const chain of frameChains(after)) {
    if (JSON.stringify(old.get(chain.name)?.rules) === JSON.stringify(chain.rules)) continue;
    batch.flushChain(chain.name);
    for (const rule of chain.rules) batch.addRule(chain.name, rule);
  }
  changeExcluded(before, after, had, batch);
  const stays = new Set(has.map(({ name }) => name));
  for (const name of had) if (!stays.has(name)) batch.deleteSet(name);
  changeElements(before, after, stays, elements);
}

const {
  addressIn,
  addressTypeIs,
  flipMark,
  hasMark,
  jump,
  lookUp,
  MASQUERADE: masquerade,
  pastTheFirst,
  protocolIs,
  RESET: reset,
  rejectPacket,
  verdict,
} = statements;

function baseChains(context: PlanContext): readonly NftChain[] {
  const base = baseChain(context);
  return [
    ...(context.fastPath ? [] : firewallHooks(context)),
    base("filter", "input", 0, "filter-input", "nodeport-endpoints-check", "service-endpoints-check"),
    base("filter", "forward", 0, "filter-forward", ...(context.fastPath ? [FORWARD_CHECK] : FORWARD_CHECKS)),
    base("filter", "output", 0, "filter-output", "service-endpoints-check", "cluster-ips-check"),
    base("nat", "prerouting", -100, "nat-prerouting", "services"),
    base("nat", "output", -100, "nat-output", "services"),
    base("nat", "postrouting", 100, "nat-postrouting", "masquerading"),
  ];
}

const FORWARD_CHECKS = ["service-endpoints-check", "cluster-ips-check"] as const;
const FORWARD_CHECK = "forward-check";

/** With the fast path a forwarded packet that does not take it is asked once whether it is a connection's first one. */
function forwardCheck({ fastPath }: PlanContext): readonly NftChain[] {
  if (!fastPath) return [];
  return [{ name: FORWARD_CHECK, rules: FORWARD_CHECKS.map((chain) => ({ expressions: jump(chain) })) }];
}

function checks(context: PlanContext): readonly NftChain[] {
  const { family } = context;
  return [
    {
      name: "nodeport-endpoints-check",
      rules: [nodePortDispatch(context, "no-endpoint-nodeports", []), ...toLoopback(context)],
    },
    { name: "service-endpoints-check", rules: [...excluded(context), dispatch(family, "no-endpoint-services")] },
    ...(context.fastPath ? [] : [firewallCheck(context)]),
  ];
}

function services(context: PlanContext): NftChain {
  const { family } = context;
  return {
    name: "services",
    rules: [
      ...excluded(context),
      ...masqueradeClusterIPs(context),
      dispatch(family, "service-ips"),
      nodePortDispatch(context, "service-nodeports", addressTypeIs("daddr", "local")),
    ],
  };
}

/** Others than pods may send to ClusterIPs by this node; without a new source the answers would miss it. */
function masqueradeClusterIPs(context: PlanContext): readonly NftRule[] {
  const toClusterIP = lookUp(context.family, ["daddr"], "cluster-ips");
  const rule = (sender: readonly Expression[], comment: string): NftRule[] => [
    { expressions: [...toClusterIP, ...sender, ...markForMasquerading(context)], comment },
  ];
  if (context.masqueradeAll) return rule([], "masquerade all clusterIP traffic");
  const others = notFromPods(context);
  return others === undefined ? [] : rule(others, "masquerade clusterIP traffic from outside cluster");
}

function masquerading({ family, mark }: PlanContext): NftChain {
  const { translatedConnection } = statements;
  const hairpin = lookUp(family, ["saddr", "daddr", "l4proto", "dport"], "hairpin-connections");
  return {
    name: "masquerading",
    rules: [
      { expressions: [...hasMark(mark), ...flipMark(mark), ...masquerade] },
      { expressions: [...translatedConnection, ...hairpin, ...masquerade] },
    ],
  };
}

/** Clients that another network serves itself are sent back before anything happens to their packets. */
function excluded(context: PlanContext): readonly NftRule[] {
  if (!distinguishesClients(context)) return [];
  const { family } = context;
  const fromThem = [...lookUp(family, ["daddr"], FOREIGN), ...lookUp(family, ["saddr"], EXCLUDED)];
  // The node may have an address in the other network.
  const notFromNode = addressTypeIs("saddr", "local", "!=");
  const expressions = [...fromThem, ...notFromNode, ...verdict({ kind: "return" })];
  return [{ expressions, comment: "Another network serves these clients" }];
}

function foreign(context: PlanContext): readonly NftRule[] {
  return context.excludedClients === undefined ? leftToOthers(context) : excluded(context);
}

/** ClusterIPs that are left to another network for all clients, where others are left for some clients only. */
function leftToAll(context: PlanContext): readonly NftRule[] {
  return context.excludedClients === undefined ? [] : leftToOthers(context);
}

function leftToOthers({ family, foreignClusterIPs }: PlanContext): readonly NftRule[] {
  if (foreignClusterIPs.length === 0) return [];
  const expressions = [...lookUp(family, ["daddr"], FOREIGN), ...verdict({ kind: "return" })];
  return [{ expressions, comment: "Another network serves these" }];
}

function clusterIPsCheck(context: PlanContext): NftChain {
  const { family, serviceCIDRs } = context;
  return {
    name: "cluster-ips-check",
    rules: [
      ...foreign(context),
      {
        expressions: [...lookUp(family, ["daddr"], "cluster-ips"), ...rejectPacket(family)],
        comment: "Reject traffic to invalid ports of ClusterIPs",
      },
      ...leftToAll(context),
      ...serviceCIDRs.map((cidr) => ({
        expressions: [...addressIn(family, "daddr", cidr), ...verdict({ kind: "drop" })],
        comment: "Drop traffic to unallocated ClusterIPs",
      })),
    ],
  };
}

const HELPER = "helper for @no-endpoint-services / @no-endpoint-nodeports";

/** A connection whose endpoint is gone ends here with its next packet. */
const RESET: NftRule = {
  expressions: [...protocolIs("tcp"), ...pastTheFirst, ...reset],
  comment: "Reset connections whose endpoint is gone",
};

function reject({ family, resetStaleTCP }: PlanContext): NftChain {
  const rule = { expressions: rejectPacket(family) };
  return { name: "reject-chain", comment: HELPER, rules: resetStaleTCP ? [RESET, rule] : [rule] };
}

const RESET_OR_DROP_CHAIN: NftChain = {
  name: RESET_OR_DROP,
  comment: HELPER,
  rules: [RESET, { expressions: verdict({ kind: "drop" }) }],
};

/** Node ports on loopback addresses, as far as they are refused. */
function toLoopback({ family, refusedOnLoopback }: PlanContext): readonly NftRule[] {
  if (refusedOnLoopback.length === 0) return [];
  const byPort = lookUp(family, ["l4proto", "dport"], LOOPBACK_REFUSALS, "verdict");
  return [{ expressions: [...addressIn(family, "daddr", LOOPBACK[family]), ...byPort] }];
}

function loopbackRefusals({ family, refusedOnLoopback }: PlanContext): readonly NftChain[] {
  const refuse: readonly Expression[] = [{ kind: "counter" }, ...rejectPacket(family)];
  return refusedOnLoopback.map((protocol) => ({
    name: loopbackRefusalChain(protocol),
    rules: [{ expressions: refuse }],
  }));
}

/** The kernel takes an interval by its two ends, and checks each against all: they go and come together. */
function changeExcluded(before: PlanContext, after: PlanContext, had: ReadonlySet<string>, batch: NftBatch): void {
  const was = had.has(EXCLUDED);
  const same = JSON.stringify(before.excludedClients) === JSON.stringify(after.excludedClients);
  if (!distinguishesClients(after) || (was && same)) return;
  if (was) batch.flushSet(EXCLUDED);
  batch.addElements(EXCLUDED, excludedElements(after));
}

function changeElements(
  before: PlanContext,
  after: PlanContext,
  stays: ReadonlySet<string>,
  elements: ElementChanges,
): void {
  const old = frameElements(before);
  for (const [set, list] of frameElements(after)) {
    if (!stays.has(set)) continue;
    const was = new Set((old.get(set) ?? []).map(({ key }) => key));
    const is = new Set(list.map(({ key }) => key));
    for (const key of was) if (!is.has(key)) elements.delete(set, key);
    for (const key of is) if (!was.has(key)) elements.add(set, { key });
  }
}
