/**
 * Follows the objects that an agent follows, with what they teach: learned networks, and objects that cannot be used.
 */

import { systemClock } from "@fairlead/base";
import { type ClusterState, decodeNode, type NodeState, type Problem, type ServiceKey, splitKey } from "@fairlead/core";
import { factsOf } from "@fairlead/inspect";
import {
  keepingMirrors,
  type LearnedCIDR,
  type LearnedOnce,
  LiveNetworks,
  learnedCIDRs,
  type MirroredSlices,
  type NetworksOnceParts,
  shownAnnotations,
  subscriptions,
} from "@fairlead/intake";
import type { ObjectSource, OtherSubscription, SourceReport, Subscription } from "@fairlead/watch";
import type { UnusableAnswer, UnusableRow } from "../protocol.ts";
import type { AgentSetup } from "./plans.ts";

interface Followed {
  readonly state: ClusterState;
  /** Slices that OVN-Kubernetes mirrors go there. */
  readonly mirrored: MirroredSlices;
  readonly setup: Pick<AgentSetup, "mode" | "config">;
  readonly unusable: Pick<UnusableObjects, "take">;
  readonly onChange: () => void;
  readonly onMirrored: (service: ServiceKey) => void;
  /** A node came, changed or (undefined) went. */
  readonly onNode: (name: string, node: NodeState | undefined) => void;
  /** Whether Nodes may be listed, whenever that is known. */
  readonly onNodesForbidden: (are: boolean) => void;
  readonly onServiceCIDRs: (cidrs: readonly string[]) => void;
  /** Absent: nothing is learned of networks. */
  readonly learning?: Learning;
  /** What is known of networks may be something else. */
  readonly onNetworks: () => void;
  /** All that there is at the start is known; once. */
  readonly onComplete: () => void;
}

const NODES = { group: "", version: "v1", plural: "nodes", kind: "Node", namespaced: false } as const;

/** Follows the objects until the signal aborts, or the source ends. */
export async function followObjects(source: ObjectSource, to: Followed, signal: AbortSignal): Promise<void> {
  const { learning } = to;
  const live = learning?.live;
  const missing = new Set(["services", "endpointSlices", "nodes", ...(live ? ["networks"] : [])]);
  const known = (what: string) => {
    if (missing.delete(what) && missing.size === 0) to.onComplete();
  };
  const { serviceCIDRs: wanted = false } = factsOf(to.setup.mode).needs;
  const { services, endpointSlices, serviceCIDRs } = subscriptions({
    state: to.state,
    annotations: shownAnnotations(to.setup.config),
    serviceProxyName: to.setup.config.serviceProxyName,
    problems: { object: (kind, namespace, name, found) => to.unusable.take(kind, namespace, name, found) },
    onNode: () => {},
    onChange: to.onChange,
    onSynced: (resource) => {
      live?.synced(resource);
      known(resource);
    },
    ...((wanted || live) && {
      onServiceCIDRs: (cidrs) => {
        live?.setServiceCIDRs(cidrs);
        if (wanted) to.onServiceCIDRs(cidrs);
      },
    }),
  });
  learning?.start({ onFirst: () => known("networks"), onDecided: to.onNetworks });
  const nodes: OtherSubscription = {
    resource: NODES,
    decode: (raw) => {
      const { namespace, name, object, problems } = decodeNode(raw);
      to.unusable.take("Node", namespace, name, problems);
      return object;
    },
    onChange: (change) => {
      if (change.type === "synced") known("nodes");
      // An upsert has what `decode` gave.
      else to.onNode(change.key.slice(1), change.type === "upsert" ? (change.object as NodeState) : undefined);
    },
    onState: (state) => {
      // Who may not list nodes looks without their zones and addresses.
      if (state !== "listed") known("nodes");
      to.onNodesForbidden(state === "forbidden");
    },
  };
  const followed = {
    services: leaving("Service", services, to),
    endpointSlices: leaving("EndpointSlice", keepingMirrors(endpointSlices, to.mirrored, to.onMirrored), to),
  };
  await source.run(
    { ...followed, ...(serviceCIDRs && { serviceCIDRs }), others: withNodes(live?.subscriptions ?? [], nodes) },
    signal,
  );
}

interface LearningEnds {
  /** All that there is to know at the start is known; once. */
  readonly onFirst: () => void;
  /** A decision was made: other CIDRs or rules may count, or why one does not is another reason. */
  readonly onDecided: () => void;
}

/** What agents learn of networks from their objects, for as long as these are followed. */
export class Learning {
  readonly live: LiveNetworks;
  #decision: LearnedOnce["decision"] | undefined;
  #onDecided = () => {};

  /** @param settings which objects say CIDRs */
  constructor(settings: NetworksOnceParts["settings"], state: ClusterState) {
    this.live = new LiveNetworks({
      setup: { settings },
      state,
      clock: systemClock,
      onProblem: () => {},
      onDecided: (decision) => {
        this.#decision = decision;
        this.#onDecided();
      },
      keep: () => {},
    });
  }

  start({ onFirst, onDecided }: LearningEnds): void {
    this.#onDecided = onDecided;
    this.live.start({ onFirst, onChange: () => {} });
  }

  /** Undefined until the first decision. */
  now(): LearnedOnce | undefined {
    const decision = this.#decision;
    return decision && { decision, report: this.live.report(), problems: [] };
  }

  /** Those that count as another network's, with their objects. */
  cidrs(): ReadonlyMap<string, LearnedCIDR> {
    return learnedCIDRs(this.live.report().cidrs);
  }

  /**
   * Endpoints of these came, moved or went, and were planned.
   *
   * @returns those that a decision which was made meanwhile has not seen where they are now
   */
  async see(services: ReadonlySet<ServiceKey>): Promise<ReadonlySet<ServiceKey>> {
    await this.live.see(services);
    return this.live.takeConcerned();
  }
}

type BadObject = Extract<SourceReport, { readonly type: "badObject" }>;

/** By the names that sources give them. */
const KINDS: Readonly<Record<string, string>> = {
  services: "Service",
  endpointSlices: "EndpointSlice",
  node: "Node",
  serviceCIDRs: "ServiceCIDR",
};

/** More of them are counted, not listed. */
const MOST_LISTED = 100;
/** Nor is more kept than this: a client could write any number of bad objects. */
const MOST_KEPT = 10_000;

/** Objects that cannot be used, or not as they are: each with its fields and why, until it is good or gone. */
export class UnusableObjects {
  readonly #rows = new Map<string, readonly UnusableRow[]>();
  readonly #now: () => number;
  onChange: () => void = () => {};

  /** @param now milliseconds since the epoch */
  constructor(now: () => number = () => Date.now()) {
    this.#now = now;
  }

  /** All problems that one object has now; none, when it has none anymore. */
  take(kind: string, namespace: string, name: string, problems: readonly Problem[]): void {
    const object = `${kind} ${namespace === "" ? "" : `${namespace}/`}${name}`;
    const at = this.#now();
    this.#put(
      object,
      problems.map(({ field, value, reason }) => ({ object, at, field, value, why: reason })),
    );
  }

  /** What a source cannot make anything of. */
  report({ resource, key, file, error }: Pick<BadObject, "resource" | "key" | "file" | "error">): void {
    const kind = KINDS[resource] ?? resource;
    const object = key === undefined ? `${kind} without a name` : `${kind} ${key.replace(/^\//, "")}`;
    const row = { object, at: this.#now(), field: "", value: "", why: error, ...(file !== undefined && { file }) };
    this.#put(object, [row]);
  }

  /** In the order in which they were found. */
  now(): UnusableAnswer {
    const rows = [...this.#rows.values()].flat();
    return { objects: this.#rows.size, rows: rows.slice(0, MOST_LISTED) };
  }

  #put(object: string, rows: readonly UnusableRow[]): void {
    const isKnown = this.#rows.delete(object);
    const isKept = rows.length > 0 && this.#rows.size < MOST_KEPT;
    if (isKept) this.#rows.set(object, rows);
    if (isKnown || isKept) this.onChange();
  }
}

/** The networks want nodes, too. */
function withNodes(others: readonly OtherSubscription[], nodes: OtherSubscription): readonly OtherSubscription[] {
  const isNodes = ({ resource }: OtherSubscription) => resource.kind === NODES.kind && resource.group === NODES.group;
  const theirs = others.find(isNodes);
  return [theirs === undefined ? nodes : followedByBoth(nodes, theirs), ...others.filter((one) => !isNodes(one))];
}

/** What is gone has no problems. */
function leaving<T>(
  kind: string,
  subscription: Subscription<T>,
  { unusable }: Pick<Followed, "unusable">,
): Subscription<T> {
  return {
    ...subscription,
    onChange: (change) => {
      if (change.type === "delete") {
        const { namespace, name } = splitKey(change.key);
        unusable.take(kind, namespace, name, []);
      }
      return subscription.onChange(change);
    },
  };
}

/** What each of the two made of an object; undefined: it can make nothing of it. */
interface Decoded {
  readonly one: unknown;
  readonly other: unknown;
}

/** One subscription of objects that two want: a source has one for each resource. */
function followedByBoth(one: OtherSubscription, other: OtherSubscription): OtherSubscription {
  return {
    resource: one.resource,
    decode: (raw): Decoded => ({ one: one.decode(raw), other: other.decode(raw) }),
    onChange: async (change) => {
      if (change.type !== "upsert") {
        await one.onChange(change);
        await other.onChange(change);
        return;
      }
      // An upsert has what `decode` gave.
      const decoded = change.object as Decoded;
      if (decoded.one !== undefined) await one.onChange({ ...change, object: decoded.one });
      if (decoded.other !== undefined) await other.onChange({ ...change, object: decoded.other });
    },
    onState: (state) => {
      one.onState?.(state);
      other.onState?.(state);
    },
  };
}
