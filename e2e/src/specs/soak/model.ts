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
export const DAMAGES = ["noServices", "noMasquerade", "noRefusal"] as const;

export type Damage = (typeof DAMAGES)[number];

/** One thing that happens. */
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

/** What the step makes of the cluster. */
export function after(model: SoakModel, step: SoakStep): SoakModel {
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

/** Who has to answer for a service, by name. */
export function servingPods({ pods }: SoakModel, service: string): readonly string[] {
  return pods.filter(({ app, ready }) => app === service && ready).map(({ name }) => name);
}
