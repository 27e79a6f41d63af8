import { IP_FAMILIES, toEnd } from "@fairlead/base";
import type { AgentConfig, LoopbackNodePorts } from "@fairlead/config";
import {
  type ClusterView,
  type IPFamily,
  type OwnershipMemory,
  type Planner,
  type PlannerOptions,
  type PlanStep,
  type Problem,
  planState,
  type ServiceKey,
  withoutOwnAnnotations,
} from "@fairlead/core";
import { createEndpointFilter, type FilterOptions } from "@fairlead/endpoint-filter";
import { firstOfEach, NodeInputs, type PodNetworkFacts } from "@fairlead/intake";
import type { Cluster } from "./cluster.ts";
import { factsOf, type Mode, modeOf } from "./modes/index.ts";

export interface NodePlanRequest {
  readonly cluster: Cluster;
  readonly config: AgentConfig;
  /** From the configuration by `filterSettings`. */
  readonly filter: FilterOptions;
  readonly nodeName: string;
  readonly mode: Mode;
  /** What the agent remembers of services without endpoints. Default: nothing. */
  readonly memory?: OwnershipMemory;
  /** The addresses that the node has. Default: those of its Node object, and loopback. */
  readonly addresses?: readonly string[];
  /**
   * What plans is kube-proxy: it knows no annotation `fairlead.dev/…`, and its `primary` serves every address of a
   * family without Node IP. Default: Fairlead.
   */
  readonly asKubeProxy?: boolean;
  /** The services to plan. Default: all. */
  readonly services?: Iterable<ServiceKey>;
}

/** What the agent of a node would make of a cluster. */
export interface PlannedNode {
  readonly mode: Mode;
  readonly nodeName: string;
  readonly options: PlannerOptions;
  readonly planner: Planner;
  /** The objects as its proxy reads them. */
  readonly state: ClusterView;
  readonly memory: OwnershipMemory;
  readonly pods: PodNetworkFacts;
  /** What becomes of node ports on a family's loopback addresses; undefined: they are served as on other addresses. */
  readonly loopbackNodePorts: (family: IPFamily) => LoopbackNodePorts | undefined;
  /** Whether established connections may bypass rules, as far as the configuration is concerned. */
  readonly fastPath: boolean;
  /** Frontends that two services claim, bad annotations. */
  readonly problems: PlanStep["problems"];
  /** What of the objects is valid and does other than it seems to ask for, on this node. */
  readonly notices: readonly Problem[];
  /** What the agent would remember from now on. */
  readonly remembered: PlanStep["memory"];
}

/** Plans a cluster for one node, in both families, as its agent does it. */
export function planNode(request: NodePlanRequest): PlannedNode {
  return toEnd(planNodeSteps(request));
}

/** The same in steps, for callers that do other things between. */
export function* planNodeSteps(request: NodePlanRequest): Generator<void, PlannedNode, void> {
  const { cluster, nodeName, mode } = request;
  const options = nodeOptions(request);
  const memory = request.memory ?? { get: () => undefined };
  const { asKubeProxy = false } = request;
  const state = asRead(cluster.state, asKubeProxy);
  const { planner, step } = yield* planState(state, options, request.services, memory);
  const { problems, memory: remembered } = step;
  const notices = [
    ...(cluster.notices ?? []).filter((one) => !asKubeProxy || one.field !== ANNOTATIONS),
    ...step.notices,
  ];
  const loopbackNodePorts = (family: IPFamily) => modeOf(mode).loopbackNodePorts?.(request.config, family);
  const planned = { mode, nodeName, options, planner, state, memory, pods: podFacts(cluster) };
  const fastPath = modeOf(mode).fastPath?.(request.config) ?? false;
  return { ...planned, loopbackNodePorts, fastPath, problems, notices, remembered };
}

/** The field of notices about annotations, which are Fairlead's own. */
const ANNOTATIONS = "metadata.annotations";

/** The objects as a proxy reads them: kube-proxy knows no annotation `fairlead.dev/…`. */
export function asRead(state: ClusterView, asKubeProxy = false): ClusterView {
  return asKubeProxy ? withoutOwnAnnotations(state) : state;
}

/** What says in which networks the pods of a cluster are. */
export function podFacts({ state, mirrored, learned }: Cluster): PodNetworkFacts {
  return { state, mirrored, defaultVPCs: learned?.report.defaultVPCs };
}

export function nodeOptions(request: Omit<NodePlanRequest, "memory" | "services">): PlannerOptions {
  const { cluster, config, filter, nodeName, mode, asKubeProxy = false } = request;
  const facts = factsOf(mode);
  const inputs = new NodeInputs({
    config,
    nodeName,
    families: IP_FAMILIES,
    filter: createEndpointFilter(filter),
    mode: facts,
    primaryAsUpstream: asKubeProxy,
  });
  const { node, serviceCIDRs, otherAddresses, learned } = cluster;
  if (node !== undefined) inputs.setNode(node);
  if (serviceCIDRs !== undefined) inputs.setServiceCIDRs(serviceCIDRs);
  // kube-proxy takes an address that another Node has.
  if (otherAddresses !== undefined && !asKubeProxy) inputs.setOtherNodes(otherAddresses);
  if (learned !== undefined) inputs.setNetworks(learned.decision);
  const addresses = request.addresses ?? ["127.0.0.1", "::1", ...(node?.addresses ?? [])];
  inputs.setAddresses(addresses, firstOfEach(addresses));
  return inputs.options();
}
