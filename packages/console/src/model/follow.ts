import { type ClusterState, decodeNode, type NodeState, type ServiceKey, splitKey } from "@fairlead/core";
import { factsOf } from "@fairlead/inspect";
import { keepingMirrors, type MirroredSlices, shownAnnotations, subscriptions } from "@fairlead/intake";
import type { ObjectSource, OtherSubscription, Subscription } from "@fairlead/watch";
import type { AgentSetup } from "./agent-setup.ts";
import { followedByBoth } from "./followed-by-both.ts";
import type { Learning } from "./learning.ts";
import type { UnusableObjects } from "./unusable.ts";

export interface Followed {
  /** Services and slices go there. */
  readonly state: ClusterState;
  /** Slices that OVN-Kubernetes mirrors go there. */
  readonly mirrored: MirroredSlices;
  readonly setup: Pick<AgentSetup, "mode" | "config">;
  readonly unusable: Pick<UnusableObjects, "take">;
  /** A service or a slice changed. */
  readonly onChange: () => void;
  /** A mirrored slice of this service came, changed or went. */
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
    problems: { object: (...found) => to.unusable.take(...found) },
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
