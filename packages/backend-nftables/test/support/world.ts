import { familyOf, IP_FAMILIES } from "@fairlead/base";
import { VirtualClock } from "@fairlead/base/testing";
import type { ForwardingPlan, IPFamily, PlannerOptions } from "@fairlead/core";
import { FakeNftables } from "@fairlead/kernel/fake";
import { type BatchObject, NFT_FAMILY, type NftBatch } from "@fairlead/netfilter/nft";
import {
  type GoldenNode,
  goldenNode,
  goldenPlannerOptions,
  goldenScenarios,
  NETWORKS,
  TestCluster,
} from "@fairlead/testkit";
import { type SlotState, World } from "@fairlead/testkit/histories";
import { createNftablesBackend, type NftablesOptions, type NftablesPort, nftablesSemantics } from "../../src/index.ts";

export type Batches = readonly (readonly (readonly [number, SlotState | undefined])[])[];

export function openWorld(more: Partial<PlannerOptions> = {}): World {
  return new World(plannerOptions(goldenNode(false), more));
}

/** A backend on a fake, after a full sync of nothing. */
export async function openLive(settings: Pick<NftablesOptions, "fastPath" | "devices"> = {}) {
  const clock = new VirtualClock();
  const fake = new FakeNftables({ clock });
  const { port, transactions } = recorded(fake);
  const backend = createNftablesBackend(port, { family: "IPv4", clock, ...settings });
  const world = openWorld();
  await backend.sync(world.plan);
  const table = () => {
    const found = fake.tableNow("ip", "kube-proxy");
    if (found === undefined) throw new Error("there is no table kube-proxy");
    return found;
  };
  return { clock, fake, backend, world, table, transactions };
}

/** A node without a service, which knows where ClusterIPs are. */
export const EMPTY_PLAN: Readonly<Record<IPFamily, ForwardingPlan>> = {
  IPv4: emptyPlan("IPv4"),
  IPv6: emptyPlan("IPv6"),
};

/** What messages were about, of all transactions that a port was given. */
interface Recorded {
  readonly port: NftablesPort;
  readonly transactions: (readonly BatchObject[])[];
}

export function recorded(port: NftablesPort): Recorded {
  const transactions: (readonly BatchObject[])[] = [];
  return {
    transactions,
    port: {
      roomFor: (wanted) => port.roomFor(wanted),
      generation: () => port.generation(),
      table: (family, name) => port.table(family, name),
      sets: (family, table, wanted) => port.sets(family, table, wanted),
      async commit(batch) {
        transactions.push(objectsOf(batch));
        await port.commit(batch);
      },
    },
  };
}

/** A set, a map or a chain, as `nft list` prints it. */
export interface Block {
  /** `chain services` */
  readonly head: string;
  readonly lines: readonly string[];
  /** One for each, in a fixed order: the kernel's own is that of its hashes. */
  readonly elements: readonly string[];
}

export function blocksOf(text: string): readonly Block[] {
  return [...text.matchAll(/^\t((?:set|map|chain) \S+) \{\n(.*?)^\t\}$/gms)].map(([, head = "", body = ""]) => {
    const [, elements = ""] = /^\t\telements = \{ (.*?) \}$/ms.exec(body) ?? [];
    const lines = body.replace(/^\t\telements = \{.*?\}\n/ms, "").split("\n");
    const each = elements.split(/,\s+/).filter((element) => element !== "");
    return { head, lines: lines.map((line) => line.trim()).filter((line) => line !== ""), elements: each.sort() };
  });
}

function emptyPlan(family: IPFamily): ForwardingPlan {
  return {
    family,
    groups: new Map(),
    node: {
      detector: { kind: "cidrs", cidrs: [NETWORKS.calico[family]] },
      nodePortAddresses: { kind: "all" },
      serviceCIDRs: [NETWORKS.services[family]],
    },
    healthChecks: new Map(),
    foreignClusterIPs: new Set(),
    endpointCount: 0,
  };
}

function objectsOf(batch: NftBatch): readonly BatchObject[] {
  return Array.from({ length: batch.count }, (_, at) => batch.objectOf(at + 1)).filter((one) => one !== undefined);
}

/** What the agent plans with in this mode: node ports are served on the node's own addresses only. */
export function plannerOptions(node: GoldenNode, more: Partial<PlannerOptions> = {}): PlannerOptions {
  const of = (values: readonly string[], family: IPFamily) =>
    values.filter((value) => familyOf(value.split("/")[0] ?? "") === family);
  const byFamily = <T>(value: (family: IPFamily) => T) => ({ IPv4: value("IPv4"), IPv6: value("IPv6") });
  return goldenPlannerOptions(node, nftablesSemantics, {
    nodePortAddresses: byFamily((family) => ({ kind: "list", addresses: of(node.addresses, family) })),
    serviceCIDRs: byFamily((family) => of(node.serviceCIDRs, family)),
    ...more,
  });
}

interface Recording {
  readonly name: string;
  readonly family: IPFamily;
  readonly plan: ForwardingPlan;
  /** The table, as `nft list ruleset` printed what kube-proxy made. */
  readonly text: string;
}

export function recordings(): readonly Recording[] {
  return goldenScenarios().flatMap(({ name, objects, node, nft }) => {
    const cluster = new TestCluster(plannerOptions(node));
    cluster.put(...objects);
    cluster.replan();
    return IP_FAMILIES.flatMap((family) => {
      const [, text] = new RegExp(`^(table ${NFT_FAMILY[family]} kube-proxy \\{\n.*?\n\\}\n)`, "ms").exec(nft) ?? [];
      return text === undefined ? [] : [{ name, family, plan: cluster.plan(family), text }];
    });
  });
}
