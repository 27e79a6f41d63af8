/** Reads the objects of a cluster once. */

import { systemClock } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  ClusterState,
  type ClusterView,
  type NodeState,
  type Problem,
  type ServiceKey,
  serviceKey,
  splitKey,
} from "@fairlead/core";
import {
  keepingMirrors,
  type LearnedOnce,
  MirroredSlices,
  NetworksOnce,
  type NetworksOnceParts,
  type OtherNodesOptions,
  type Resource,
  shownAnnotations,
  subscriptions,
  withOtherNodes,
} from "@fairlead/intake";
import type {
  ObjectKey,
  ObjectSource,
  OtherResource,
  OtherState,
  OtherSubscription,
  Subscription,
} from "@fairlead/watch";

export interface Cluster {
  readonly state: ClusterState;
  /** The node that is asked about; absent: it has no Node object. */
  readonly node?: NodeState;
  /** The ranges of services, of both families; absent: they were not asked for. */
  readonly serviceCIDRs?: readonly string[];
  /** The addresses of the other Nodes, sorted; absent: they were not asked for, or may not be read. */
  readonly otherAddresses?: readonly string[];
  /** Absent: no network is learned. */
  readonly learned?: LearnedOnce;
  /** What OVN-Kubernetes mirrors for Services of user-defined networks. Absent: it was not looked at. */
  readonly mirrored?: MirroredSlices;
  readonly problems: readonly Problem[];
  /** What of single objects is valid and does other than it seems to ask for. Default: nothing. */
  readonly notices?: readonly Problem[];
}

/** Which of a source's objects are wanted. */
export interface ReadOptions {
  /** The services whose EndpointSlices are wanted, once all services are known. Default: all. */
  readonly slicesOf?: ((state: ClusterView) => ReadonlySet<ServiceKey>) | undefined;
  /**
   * Whether the ranges of services are wanted: by modes that recognize ClusterIPs that no service has. Default false.
   */
  readonly serviceCIDRs?: boolean;
  /** The node whose others' addresses are wanted: by modes that make addresses of services its own. Default: none. */
  readonly othersOf?: string | undefined;
  /** What may not be read: it is done without. */
  readonly without?: ReadonlySet<"node" | "serviceCIDRs">;
  /** Networks that the agent would learn. Default: none. */
  readonly networks?: NetworksOnceParts["settings"] | undefined;
  /** The agent's: which services it is for, and which annotations its rules ask for. Default: the first proxy's. */
  readonly config?: AgentConfig;
}

/** Reads a source of objects until all of them are there, and no longer. */
export async function readCluster(
  source: ObjectSource,
  signal: AbortSignal,
  { slicesOf, networks: settings, config, othersOf, without = new Set(), ...options }: ReadOptions = {},
): Promise<Cluster> {
  const state = new ClusterState();
  const problems: Problem[] = [];
  const notices: Problem[] = [];
  // Whether a learned CIDR meets them is asked.
  const wantsCIDRs = options.serviceCIDRs === true || settings !== undefined;
  const serviceCIDRs = wantsCIDRs && !without.has("serviceCIDRs");
  const missing = new Set<Wanted>(["services", "endpointSlices", "node"]);
  if (without.has("node")) missing.delete("node");
  if (settings !== undefined) missing.add("networks");
  if (serviceCIDRs) missing.add("serviceCIDRs");
  const nodeName = without.has("node") ? undefined : othersOf;
  if (nodeName !== undefined) missing.add("otherNodes");
  const done = new AbortController();
  let node: NodeState | undefined;
  let ranges: readonly string[] | undefined;
  const known: { otherAddresses?: readonly string[] } = {};
  const synced = (resource: Wanted) => {
    missing.delete(resource);
    if (missing.size === 0) done.abort();
  };
  const { node: nodes, ...objects } = subscriptions({
    state,
    annotations: config && shownAnnotations(config),
    serviceProxyName: config?.serviceProxyName,
    problems: {
      object: (_kind, _namespace, _name, found, noted = []) => {
        problems.push(...found);
        notices.push(...noted);
      },
    },
    onChange: () => {},
    onNode: (known) => {
      node = known;
    },
    onSynced: (resource) => {
      if (resource === "services" && slicesOf !== undefined) slices.release(slicesOf(state));
      synced(resource);
    },
    ...(serviceCIDRs && {
      onServiceCIDRs: (cidrs: readonly string[]) => {
        ranges = cidrs;
        synced("serviceCIDRs");
      },
    }),
  });
  const once = settings && new NetworksOnce({ settings, clock: systemClock, onReady: () => synced("networks") });
  const others = {
    others: alongside(once?.subscriptions, nodeName, {
      onAddresses: (addresses) => {
        known.otherAddresses = addresses;
      },
      onKnown: () => synced("otherNodes"),
    }),
  };
  const mirrored = new MirroredSlices();
  const into = without.has("node") ? objects : { ...objects, node: nodes };
  const slices = selectedSlices(objects.endpointSlices);
  const stop = AbortSignal.any([signal, done.signal]);
  const all = keepingMirrors(objects.endpointSlices, mirrored);
  const some = keepingMirrors(slices.subscription, mirrored);
  if (slicesOf === undefined) await source.run({ ...into, ...others, endpointSlices: all }, stop);
  else await source.run({ ...into, ...others, endpointSlices: some }, stop);
  if (missing.size > 0) throw new Error(`given up before all ${[...missing].join(", ")} were read`);
  const learned = once && { learned: once.decide(state, ranges ?? []) };
  return {
    state,
    problems,
    notices,
    mirrored,
    ...learned,
    ...(node && { node }),
    ...(ranges && { serviceCIDRs: ranges }),
    ...known,
  };
}

type Wanted = Resource | "serviceCIDRs" | "networks" | "otherNodes";

/** @param nodeName the node whose others are wanted */
function alongside(
  networks: readonly OtherSubscription[] = [],
  nodeName: string | undefined,
  to: Omit<OtherNodesOptions, "nodeName">,
): readonly OtherSubscription[] {
  return nodeName === undefined ? networks : withOtherNodes(networks, { nodeName, ...to });
}

/** A subscription of EndpointSlices that passes on those of few services, once it is known which. */
interface SelectedSlices {
  readonly subscription: Subscription<unknown>;
  /** From now on slices of these services are passed on, those that came before first. */
  release(services: ReadonlySet<ServiceKey>): void;
}

/** Slices of other services are not even decoded: of many services that is most of the work. */
function selectedSlices<T>(to: Subscription<T>): SelectedSlices {
  const held = new Map<ObjectKey, unknown>();
  let wanted: ReadonlySet<ServiceKey> | undefined;
  const give = (key: ObjectKey, raw: unknown) => {
    const service = serviceOf(key, raw);
    if (service === undefined || wanted?.has(service) !== true) return;
    const object = to.decode(raw);
    if (object !== undefined) return to.onChange({ type: "upsert", key, object });
  };
  return {
    subscription: {
      decode: (raw) => raw,
      onChange: (change) => {
        if (change.type !== "upsert") return to.onChange(change);
        if (wanted !== undefined) return give(change.key, change.object);
        held.set(change.key, change.object);
      },
    },
    release: (services) => {
      wanted = services;
      for (const [key, raw] of held) give(key, raw);
      held.clear();
    },
  };
}

/** By the label that names it; undefined: there is none that can be read. */
function serviceOf(key: ObjectKey, raw: unknown): ServiceKey | undefined {
  const name = fieldOf(fieldOf(fieldOf(raw, "metadata"), "labels"), "kubernetes.io/service-name");
  return typeof name === "string" ? serviceKey(splitKey(key).namespace, name) : undefined;
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

export interface ReadObjects {
  /** `synced`: all are there, or the resource is not. Undefined: nothing is known. */
  readonly state: "synced" | "forbidden" | "unreachable" | undefined;
  readonly objects: readonly unknown[];
}

interface ReadObjectsOptions {
  /** One that cannot be reached is waited for. Default false. */
  readonly patient?: boolean;
  /** What is kept of an object. Default: all, straight from JSON. */
  readonly keep?: (raw: unknown, resource: OtherResource) => unknown;
}

/**
 * Reads resources that there may be or not, until each of them is known, and no longer.
 *
 * @param signal gives it up
 */
export async function readObjects(
  source: ObjectSource,
  resources: readonly OtherResource[],
  signal: AbortSignal,
  { patient = false, keep = (raw) => raw }: ReadObjectsOptions = {},
): Promise<ReadonlyMap<OtherResource, ReadObjects>> {
  const done = new AbortController();
  const states = new Map<OtherResource, ReadObjects["state"]>();
  const objects = new Map(resources.map((resource) => [resource, new Map<ObjectKey, unknown>()] as const));
  const others = Array.from(objects, ([resource, found]): OtherSubscription => {
    const settle = (state: OtherState | "synced") => {
      // Both are synced, too: a list behind its objects, one that is absent with none.
      if (state === "listed" || state === "absent" || (state === "unreachable" && patient)) return;
      if (states.get(resource) !== "synced") states.set(resource, state);
      if (states.size === objects.size) done.abort();
    };
    return {
      resource,
      decode: (raw) => keep(raw, resource),
      onChange(change) {
        if (change.type === "upsert") found.set(change.key, change.object);
        else if (change.type === "delete") found.delete(change.key);
        else settle("synced");
      },
      onState: settle,
    };
  });
  await source.run({ others }, AbortSignal.any([signal, done.signal]));
  return new Map(
    Array.from(objects, ([resource, found]) => [
      resource,
      { state: states.get(resource), objects: [...found.values()] },
    ]),
  );
}
