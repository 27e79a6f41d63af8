/** What becomes of a packet by the pasted rules, and the rules that are there at first. */

import { createIptablesBackend, iptablesSemantics, type RulesPort } from "@fairlead/backend-iptables";
import { nftablesSemantics, planTable } from "@fairlead/backend-nftables";
import { bracketed, inAnyOf, parseCIDR, socketText } from "@fairlead/base";
import { type ForwardingPlan, type ModeSemantics, planOnce } from "@fairlead/core";
import {
  BUILTIN_CHAINS,
  type ChainState,
  type Command,
  type IPFamily,
  type Payload,
  parseRestore,
  type Rule,
  renderRule,
  renderRuleSet,
  type Table,
  type TableState,
} from "@fairlead/netfilter";
import { ruleText, tableText } from "@fairlead/netfilter/nft";
import { type Environment, type Outcome, traceText, type Undecided, type Visit } from "@fairlead/trace";
import { parseAllDocuments } from "yaml";

/** The rules that the packet meets: those that Fairlead makes of objects in a mode, or pasted ones. */
export type RulesOrigin = DemoMode | "pasted";

export interface Question {
  readonly origin: RulesOrigin;
  /** YAML of objects, or for pasted rules what iptables-save or nft printed. */
  readonly text: string;
  readonly node: DemoNode;
  /** An address. */
  readonly from: string;
  /** `10.96.0.10:80`, `[fd00::10]:80`. */
  readonly to: string;
  readonly protocol: string;
}

export interface Step {
  readonly hook: string;
  /** `nat KUBE-SERVICES 3`: the rule's place in its chain counts from 1. */
  readonly place: string;
  readonly rule: string;
}

/** One way through the rules. */
export interface Walk {
  /** 0 < share ≤ 1. */
  readonly share: number;
  readonly steps: readonly Step[];
  /** What has to be so for this way, of rules that cannot be decided. */
  readonly provided: readonly string[];
}

/** What may become of the packet. */
export interface End {
  /** Of all its walks. */
  readonly share: number;
  readonly text: string;
  /** Whether the packet arrives somewhere. Undefined: the tracer cannot say. */
  readonly arrives: boolean | undefined;
  /** The most probable first; nftables mode draws endpoints in several tries, each of which is one. */
  readonly walks: readonly Walk[];
}

export interface Answer {
  /** The most probable first. */
  readonly ends: readonly End[];
  readonly rules: string;
  /** What was skipped of the objects. */
  readonly problems: readonly string[];
}

/** Every way of the packet through the rules. */
export async function answer({ origin, text, node, from, to, protocol }: Question): Promise<Answer> {
  const environment = environmentOf(node);
  const family = from.includes(":") ? "IPv6" : "IPv4";
  const made = origin === "pasted" ? { text, problems: [] } : await rulesFor(text, origin, node, family);
  const { outcomes, undecided } = traceText(made.text, `${bracketed(from)}→${to}/${protocol}`, environment);
  const walks = [
    ...outcomes.map((outcome) => ({
      text: endOf(outcome),
      arrives: outcome.verdict === "accept",
      walk: walkOf(outcome),
    })),
    ...undecided.map((way) => ({ text: `unknown: ${way.problem.message}`, arrives: undefined, walk: walkOf(way) })),
  ];
  const ends = [...Map.groupBy(walks, ({ text }) => text).values()].flatMap(endsOf).sort(byShare);
  return { ends, rules: made.text, problems: made.problems };
}

const byShare = (one: { readonly share: number }, other: { readonly share: number }) => other.share - one.share;

/** Walks that end alike as one end. */
function endsOf(alike: readonly (Pick<End, "text" | "arrives"> & { readonly walk: Walk })[]): readonly End[] {
  const walks = alike.map(({ walk }) => walk).sort(byShare);
  const share = walks.reduce((sum, walk) => sum + walk.share, 0);
  return alike.slice(0, 1).map(({ text, arrives }) => ({ share, text, arrives, walks }));
}

/** Pods of the node are behind an interface of their own, everything else is behind eth0. */
function environmentOf({ addresses, podCIDRs }: DemoNode): Environment {
  const wrong = podCIDRs.find((cidr) => parseCIDR(cidr) === undefined);
  if (wrong !== undefined) throw new RangeError(`CIDRs of pods: ${wrong} must be a CIDR, such as 10.144.1.0/24`);
  const ofPod = inAnyOf(podCIDRs);
  return { localAddresses: addresses, outInterface: (address) => (ofPod(address) ? "veth0" : "eth0") };
}

function walkOf({ probability, visits, assumed = [] }: Outcome | Undecided): Walk {
  return {
    share: probability,
    steps: visits.map(stepOf),
    provided: assumed.map((rule) => `${placeOf(rule)} ${rule.matched ? "matches" : "does not match"}: ${rule.problem}`),
  };
}

function endOf({ verdict, rejectWith, destination, masqueraded }: Outcome): string {
  if (verdict !== "accept") return rejectWith === undefined ? verdict : `${verdict} with ${rejectWith}`;
  const { address, port } = destination;
  return `to ${port === undefined ? address : socketText(address, port)}${masqueraded ? ", masqueraded" : ""}`;
}

function stepOf(visit: Visit): Step {
  const rule = "nft" in visit ? ruleText(visit.nft.rule, visit.nft.table) : renderRule(visit.rule);
  return { hook: visit.hook, place: placeOf(visit), rule };
}

const placeOf = ({ table, chain, index }: Visit) => `${table} ${chain} ${index + 1}`;

export const DEMO_NODE: DemoNode = { name: "node-a", addresses: ["10.201.0.10"], podCIDRs: ["10.144.1.0/24"] };

/** A service with a node port and endpoints on two nodes, and one without endpoints. */
export const DEMO_OBJECTS = `apiVersion: v1
kind: Service
metadata: { namespace: shop, name: web }
spec:
  type: NodePort
  clusterIP: 10.96.0.10
  ports: [{ name: http, port: 80, nodePort: 30080 }]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  namespace: shop
  name: web-1
  labels: { kubernetes.io/service-name: web }
addressType: IPv4
ports: [{ name: http, port: 8080 }]
endpoints:
  - { addresses: [10.144.1.5], nodeName: node-a }
  - { addresses: [10.144.2.6], nodeName: node-b }
  - { addresses: [10.144.2.7], nodeName: node-b }
---
apiVersion: v1
kind: Service
metadata: { namespace: shop, name: empty }
spec:
  clusterIP: 10.96.0.11
  ports: [{ port: 80 }]
`;

/** The node that rules are made for, in both families. */
interface DemoNode {
  readonly name: string;
  readonly addresses: readonly string[];
  readonly podCIDRs: readonly string[];
}

interface MadeRules {
  /** As iptables-save or nft would print them. */
  readonly text: string;
  /** What is wrong with objects, one line each; it was skipped. */
  readonly problems: readonly string[];
}

type DemoMode = "iptables" | "nftables";

/**
 * The rules that Fairlead writes on a node for Services and EndpointSlices.
 *
 * @param objects YAML or JSON, with `---` between documents; a List is taken as its items
 */
async function rulesFor(objects: string, mode: DemoMode, node: DemoNode, family: IPFamily): Promise<MadeRules> {
  const { plans, problems } = planOnce(objectsIn(objects), planOptions(node, SEMANTICS[mode]));
  const text = await TEXTS[mode](plans[family]);
  return { text, problems: problems.map(({ field, value, reason }) => `${field}: ${value}: ${reason}`) };
}

const SEMANTICS: Readonly<Record<DemoMode, ModeSemantics>> = {
  iptables: iptablesSemantics,
  nftables: nftablesSemantics,
};

const TEXTS: Readonly<Record<DemoMode, (plan: ForwardingPlan) => Promise<string>>> = {
  iptables: iptablesText,
  nftables: async (plan) => tableText(planTable(plan)),
};

function planOptions({ name, addresses, podCIDRs }: DemoNode, semantics: ModeSemantics) {
  const six = (text: string) => text.includes(":");
  const detector = (cidrs: readonly string[]) => ({ kind: "cidrs" as const, cidrs });
  const first = (family: (text: string) => boolean) => addresses.find(family);
  const [IPv4, IPv6] = [first((text) => !six(text)), first(six)];
  return {
    nodeName: name,
    nodeIPs: { ...(IPv4 !== undefined && { IPv4 }), ...(IPv6 !== undefined && { IPv6 }) },
    detectors: { IPv4: detector(podCIDRs.filter((cidr) => !six(cidr))), IPv6: detector(podCIDRs.filter(six)) },
    semantics,
  };
}

function objectsIn(text: string): readonly unknown[] {
  return parseAllDocuments(text).flatMap((document) => {
    if (document.errors[0] !== undefined) throw document.errors[0];
    const value: unknown = document.toJS({ maxAliasCount: 100 });
    const items = typeof value === "object" && value !== null && "items" in value ? value.items : undefined;
    return Array.isArray(items) ? items : [value];
  });
}

/** What iptables-save prints on a node that had no rules before Fairlead wrote the plan's. */
async function iptablesText(plan: ForwardingPlan): Promise<string> {
  const payloads: string[] = [];
  await createIptablesBackend(emptyNode(plan.family, payloads)).sync(plan);
  const tables = new Map<Table, TableState>();
  for (const { table, commands } of parseRestore(payloads.join(""), { family: plan.family })) {
    tables.set(table, after(tables.get(table) ?? emptyTable(table), commands));
  }
  return [...renderRuleSet(tables)].join("");
}

/** A node without rules, which keeps what it is given. */
function emptyNode(family: IPFamily, payloads: string[]): RulesPort {
  return {
    family,
    variant: "legacy",
    restore: async (payload: Payload) => {
      for await (const piece of payload) payloads.push(piece);
    },
    save: async (table) => emptyTable(table),
    async *saveLines() {},
    chains: async (table) => new Set(BUILTIN_CHAINS[table]),
    list: async (table, chain) => (BUILTIN_CHAINS[table].includes(chain) ? [] : undefined),
    texts: async () => new Map(),
  };
}

function emptyTable(table: Table): TableState {
  const chains = BUILTIN_CHAINS[table].map((name): [string, ChainState] => [
    name,
    { name, policy: "ACCEPT", rules: [] },
  ]);
  return { table, chains: new Map(chains) };
}

/** The table after a transaction into an empty one: chains are made, rules appended and inserted. */
function after({ table, chains }: TableState, commands: readonly Command[]): TableState {
  const filled = new Map([...chains].map(([name, chain]) => [name, { ...chain, rules: [...chain.rules] }]));
  const rulesOf = (name: string): Rule[] => {
    const chain = filled.get(name) ?? { name, rules: [] };
    filled.set(name, chain);
    return chain.rules;
  };
  for (const command of commands) {
    const rules = rulesOf(command.chain);
    if (command.kind === "append") rules.push(command.rule);
    if (command.kind === "insert") rules.splice(command.position - 1, 0, command.rule);
  }
  return { table, chains: filled };
}
