/** The objects that a proxy follows, and the labels by which it selects them. */

import { NETWORKS_MANAGER } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import {
  type ClusterState,
  createIntern,
  type Decoded,
  decodeEndpointSlice,
  decodeNode,
  decodeService,
  decodeServiceCIDR,
  type EndpointSlice,
  type NodeState,
  type ObjectKind,
  type Problem,
  type Service,
  type ServiceCIDR,
  splitKey,
} from "@fairlead/core";
import type { ApiSourceOptions, ObjectChange, Subscription } from "@fairlead/watch";
import { followServiceCIDRs } from "./node-inputs.ts";

export type Resource = "services" | "endpointSlices" | "node";

export interface IntakeOptions {
  /** Endpoints may be on loopback addresses: nothing but this machine is served. Default false. */
  readonly loopbackEndpoints?: boolean;
  /** Annotations of Services that are kept alongside Fairlead's own; by `ruleAnnotations`. Default: none. */
  readonly annotations?: ReadonlySet<string> | undefined;
  /** The services that are wanted, by their label service.kubernetes.io/service-proxy-name. Default: those without. */
  readonly serviceProxyName?: string | undefined;
  readonly state: ClusterState;
  /** Takes all problems and notices that one object has now; none, when it has none anymore. */
  readonly problems: {
    object(
      kind: ObjectKind,
      namespace: string,
      name: string,
      problems: readonly Problem[],
      notices?: readonly Problem[],
    ): void;
  };
  /** A Service or EndpointSlice changed in a way that may matter. */
  readonly onChange: () => void;
  /** The own Node as it is now; undefined: there is none. */
  readonly onNode: (node: NodeState | undefined) => void;
  /**
   * The CIDRs of all ServiceCIDRs, of both families, whenever one of these came, changed or went and their first list
   * is in; one CIDR may come more than once. Absent: they are not asked for.
   */
  readonly onServiceCIDRs?: ((cidrs: readonly string[]) => void) | undefined;
  /** The first complete list of a resource is in. */
  readonly onSynced: (resource: Resource) => void;
}

/** What a proxy asks of a source of objects, and where the answers go. */
export interface ProxySubscriptions {
  readonly services: Subscription<Service>;
  readonly endpointSlices: Subscription<EndpointSlice>;
  readonly node: Subscription<NodeState>;
  readonly serviceCIDRs?: Subscription<ServiceCIDR>;
}

/** Leads the changes of a source through core's decoders into the cluster state. */
export function subscriptions(options: IntakeOptions): ProxySubscriptions {
  const { state, annotations, serviceProxyName, onChange, onServiceCIDRs } = options;
  const decoding = { ...(annotations && { annotations }), ...(serviceProxyName && { serviceProxyName }) };
  const intern = createIntern();
  const decoder = <T>(kind: ObjectKind, decode: (raw: unknown) => Decoded<T>) => {
    return (raw: unknown): T | undefined => {
      const { namespace, name, object, problems, notices } = decode(raw);
      options.problems.object(kind, namespace, name, problems, notices);
      return object;
    };
  };
  const changed = (is: boolean) => {
    if (is) onChange();
  };
  return {
    services: {
      decode: decoder("Service", (raw) => decodeService(raw, intern, decoding)),
      onChange: follow("services", options, {
        upsert: (service) => changed(state.upsertService(service)),
        remove: (namespace, name) => changed(state.deleteService(namespace, name)),
      }),
    },
    endpointSlices: {
      decode: decoder("EndpointSlice", (raw) =>
        decodeEndpointSlice(raw, intern, { loopback: options.loopbackEndpoints ?? false }),
      ),
      onChange: follow("endpointSlices", options, {
        upsert: (slice) => changed(state.upsertSlice(slice)),
        remove: (namespace, name) => changed(state.deleteSlice(namespace, name)),
      }),
    },
    node: {
      decode: decoder("Node", decodeNode),
      onChange: follow("node", options, { upsert: options.onNode, remove: () => options.onNode(undefined) }),
    },
    ...(onServiceCIDRs && {
      serviceCIDRs: {
        decode: decoder("ServiceCIDR", decodeServiceCIDR),
        onChange: followServiceCIDRs(onServiceCIDRs),
      },
    }),
  };
}

/** Which Services and EndpointSlices an agent asks a source for. */
export function selectionOf({
  serviceProxyName,
  serviceNetwork,
}: Pick<AgentConfig, "serviceNetwork" | "serviceProxyName">): Pick<
  ApiSourceOptions,
  "serviceProxyName" | "slicesManagedBy"
> {
  return { serviceProxyName, ...(serviceNetwork && { slicesManagedBy: NETWORKS_MANAGER }) };
}

interface Follower<T> {
  upsert(object: T): void;
  remove(namespace: string, name: string): void;
}

function follow<T>(resource: Resource, options: IntakeOptions, follower: Follower<T>) {
  return (change: ObjectChange<T>): void => {
    if (change.type === "upsert") follower.upsert(change.object);
    else if (change.type === "delete") {
      const { namespace, name } = splitKey(change.key);
      follower.remove(namespace, name);
    } else options.onSynced(resource);
  };
}
