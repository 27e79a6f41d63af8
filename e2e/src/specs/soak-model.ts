/** The model of a cluster that changes at random, and the steps that are drawn from it. */

import type { ServiceReport } from "@fairlead/inspect";
import { modeNamed } from "@fairlead/lab/modes";
import type { ClusterNode } from "@fairlead/lab/provider/cluster";
import { uniformInt } from "pure-rand/distribution/uniformInt";
import { xoroshiro128plus } from "pure-rand/generator/xoroshiro128plus";
import type { Tool } from "./operator.ts";
import type { Scene } from "./spec.ts";

/** What a soak's cluster should look like, as far as steps change it. Immutable. */
export interface SoakModel {
  /** In which the agents run now. */
  readonly mode: string;
  /** Names of services; the pods that each selects have it as their `app`. */
  readonly services: readonly string[];
  readonly pods: readonly SoakPod[];
  /** The nodes, by their place, that have an address alongside their own. */
  readonly furtherAddresses: readonly number[];
  /** The nodes on which another program has written rules of its own. */
  readonly neighbors: readonly number[];
  /** Services and pods so far: each gets a name of its own. */
  readonly names: number;
}

export interface SoakPod {
  readonly name: string;
  readonly app: string;
  /** 0 or 1: on the first or the second node. */
  readonly node: number;
  readonly ready: boolean;
}

/** What an agent is put through. */
export type Hardship =
  | "agents restarted"
  | "agents killed"
  | "agents stopped for a while"
  | "API server away for a while"
  | "watches cut"
  | "watches ended with 410";

/** What an operator takes away by hand, of everything that the mode has on a node. */
const DAMAGES = ["noServices", "noMasquerade", "noRefusal"] as const;

export type Damage = (typeof DAMAGES)[number];

export type SoakStep =
  | { readonly kind: "service added"; readonly service: string }
  | { readonly kind: "service removed"; readonly service: string }
  | { readonly kind: "pod added"; readonly pod: SoakPod }
  | { readonly kind: "pod removed"; readonly pod: string }
  | { readonly kind: "readiness changed"; readonly pod: string; readonly ready: boolean }
  | { readonly kind: "node address added" | "node address removed"; readonly node: number }
  | { readonly kind: "neighbor writes" | "neighbor removes"; readonly node: number }
  | { readonly kind: "damaged by hand"; readonly node: number; readonly damage: Damage }
  | { readonly kind: "mode switched"; readonly mode: string }
  | { readonly kind: Hardship };

/** Before the first step. */
export function firstModel(mode: string): SoakModel {
  return { mode, services: [], pods: [], furtherAddresses: [], neighbors: [], names: 0 };
}

export function servingPods({ pods }: SoakModel, service: string): readonly string[] {
  return pods.filter(({ app, ready }) => app === service && ready).map(({ name }) => name);
}

export interface Drawn {
  readonly step: SoakStep;
  readonly model: SoakModel;
}

/** What the cluster can be put through; each mode that it has can follow on any other. */
export interface SoakScope {
  /** Of the cluster, and those to switch to. */
  readonly modes: readonly [first: string, ...others: string[]];
  readonly hardships: readonly Hardship[];
}

/** A number from 0 up to, and without, `below`. */
type Draw = (below: number) => number;

const NODES = [0, 1] as const;

/** Steps without end, always the same ones for a seed and a scope. */
export function* drawSteps(seed: number, { modes, hardships }: SoakScope): Generator<Drawn, never> {
  const random = xoroshiro128plus(seed);
  const draw: Draw = (below) => uniformInt(random, 0, below - 1);
  let model = firstModel(modes[0]);
  for (;;) {
    const now = model;
    const step = oneOf<SoakStep>(draw, [
      ...workloadSteps(now, draw),
      ...nodeSteps(now),
      ...hardships.map((kind) => ({ kind })),
      ...modes.filter((mode) => mode !== now.mode).map((mode) => ({ kind: "mode switched", mode }) as const),
      ...NODES.map((node) => ({ kind: "damaged by hand", node, damage: oneOf(draw, DAMAGES) }) as const),
    ]);
    model = after(model, step);
    yield { step, model };
  }
}

function after(model: SoakModel, step: SoakStep): SoakModel {
  switch (step.kind) {
    case "service added":
      return { ...model, services: [...model.services, step.service], names: model.names + 1 };
    case "service removed":
      return { ...model, services: without(model.services, step.service) };
    case "pod added":
      return { ...model, pods: [...model.pods, step.pod], names: model.names + 1 };
    case "pod removed":
      return { ...model, pods: model.pods.filter(({ name }) => name !== step.pod) };
    case "readiness changed":
      return { ...model, pods: model.pods.map((pod) => (pod.name === step.pod ? { ...pod, ready: step.ready } : pod)) };
    case "node address added":
      return { ...model, furtherAddresses: [...model.furtherAddresses, step.node] };
    case "node address removed":
      return { ...model, furtherAddresses: without(model.furtherAddresses, step.node) };
    case "neighbor writes":
      return { ...model, neighbors: [...model.neighbors, step.node] };
    case "neighbor removes":
      return { ...model, neighbors: without(model.neighbors, step.node) };
    case "mode switched":
      return { ...model, mode: step.mode };
    default:
      return model;
  }
}

function without<T>(all: readonly T[], gone: T): readonly T[] {
  return all.filter((one) => one !== gone);
}

const MOST_SERVICES = 5;
const MOST_PODS = 8;

/** Three times each: most of what happens in a cluster is of this kind. */
function workloadSteps({ services, pods, names }: SoakModel, draw: Draw): readonly SoakStep[] {
  const once = () => [
    ...(services.length < MOST_SERVICES ? [{ kind: "service added", service: `service-${names}` } as const] : []),
    ...some(draw, services).map((service) => ({ kind: "service removed", service }) as const),
    ...(pods.length < MOST_PODS ? some(draw, services) : []).map((app) => {
      const pod = { name: `pod-${names}`, app, node: oneOf(draw, NODES), ready: true };
      return { kind: "pod added", pod } as const;
    }),
    ...some(draw, pods).map(({ name }) => ({ kind: "pod removed", pod: name }) as const),
    ...some(draw, pods).map(({ name, ready }) => ({ kind: "readiness changed", pod: name, ready: !ready }) as const),
  ];
  return [...once(), ...once(), ...once()];
}

function nodeSteps({ furtherAddresses, neighbors }: SoakModel): readonly SoakStep[] {
  return NODES.flatMap((node): readonly SoakStep[] => [
    { kind: furtherAddresses.includes(node) ? "node address removed" : "node address added", node },
    { kind: neighbors.includes(node) ? "neighbor removes" : "neighbor writes", node },
  ]);
}

function some<T>(draw: Draw, all: readonly T[]): readonly T[] {
  return all.length === 0 ? [] : [oneOf(draw, all)];
}

function oneOf<T>(draw: Draw, all: readonly T[]): T {
  const found = all[draw(all.length)];
  if (found === undefined) throw new Error("nothing to draw from");
  return found;
}

/** The rules of every node in both families, as a set of lines. */
type RulesSeen = ReadonlyMap<string, ReadonlySet<string>>;

export async function readRules({ cluster }: Scene, mode: string): Promise<RulesSeen> {
  const { listings, linesOf } = modeNamed(mode).rules;
  const onNode = async ({ name, run }: ClusterNode) => {
    const listed = await Promise.all(listings.map((argv) => run(argv)));
    const lines = listed.flatMap(({ stdout }, at) => linesOf(stdout).map((line) => `${listings[at]?.[0]} ${line}`));
    return [name, new Set(lines)] as const;
  };
  return new Map(await Promise.all(cluster.nodes.map(onNode)));
}

export function expectSameRules(before: RulesSeen, now: RulesSeen): void {
  const differing = [...before].flatMap(([node, lines]) => {
    const there = now.get(node) ?? new Set<string>();
    const gone = [...lines].filter((line) => !there.has(line)).map((line) => `${node} - ${line}`);
    return [...gone, ...[...there].filter((line) => !lines.has(line)).map((line) => `${node} + ${line}`)];
  });
  if (differing.length > 0) throw new Error(`a fresh start has other rules:\n${differing.join("\n")}`);
}

/** The comparison must be able to fail: what is damaged while the agent cannot repair it has to be found. */
export async function expectDamageFound({ nodes, family }: Scene, mode: string, tool: Tool): Promise<void> {
  const [node] = nodes;
  const { byHand } = modeNamed(mode);
  if (byHand === undefined) throw new Error(`no known fault to make in ${mode} mode`);
  await node.agent.signal("SIGSTOP");
  try {
    for (const what of DAMAGES) {
      await node.run(byHand[what](family));
      const found = findingsIn(await tool(node, mode, "verify", "-o", "json"));
      if (found.length === 0) throw new Error(`verify finds nothing although ${what} was done in ${mode} mode`);
    }
  } finally {
    await node.agent.signal("SIGCONT");
  }
}

/**
 * Waits until every node has just what a fresh start would program for the objects that the API server has now, object
 * by object (`fairlead verify`).
 */
export async function expectAsPlanned({ cluster, until }: Scene, mode: string, tool: Tool): Promise<void> {
  await until("the nodes to have what a fresh start would program", async () => {
    const reports = await Promise.all(cluster.nodes.map((node) => tool(node, mode, "verify", "-o", "json")));
    const wrong = reports.flatMap((text, at) =>
      findingsIn(text).map((finding) => `${cluster.nodes[at]?.name}: ${finding}`),
    );
    return wrong.length === 0 ? undefined : wrong.join("\n");
  });
}

interface FamilyReport {
  readonly services: readonly ServiceReport[];
}

/** What `fairlead verify -o json` has found, a line each. */
export function findingsIn(text: string): readonly string[] {
  const reports: readonly FamilyReport[] = JSON.parse(text);
  return reports
    .flatMap(({ services }) => services.flatMap(({ findings }) => findings))
    .map(({ kind, service = "", where, what }) => `${kind} ${service} ${where}: ${what}`);
}
