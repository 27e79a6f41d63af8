import { fieldsOf, itemsOf, toEnd } from "@fairlead/base";
import type { ModeSemantics } from "../backend.ts";
import { ClusterState, type ClusterView } from "../cluster-state.ts";
import { decodeEndpointSlice } from "../decode/endpoint-slice.ts";
import { decodeService } from "../decode/service.ts";
import type { OwnershipMemory } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { ForwardingPlan } from "../plan.ts";
import type { Problem } from "../problem.ts";
import type { PlannerOptions } from "./options.ts";
import { Planner } from "./planner.ts";
import type { PlanStep } from "./step.ts";

/** What is planned for. Where it is not given: both families, node ports on every address, nothing masqueraded. */
export interface PlanOnceOptions extends Partial<Omit<PlannerOptions, "semantics">> {
  /** Of the mode that is planned for: its backend exports it. */
  readonly semantics: ModeSemantics;
  /** Plans those whose label service.kubernetes.io/service-proxy-name has this value. Default "": those without it. */
  readonly serviceProxyName?: string;
}

/** What `planOnce` gives. */
export interface PlannedOnce {
  /** A plan for each family; without services it is empty. */
  readonly plans: Readonly<Record<IPFamily, ForwardingPlan>>;
  /** What is wrong in or between objects, and was skipped. */
  readonly problems: readonly Problem[];
  /** What is valid and does other than it seems to ask for. */
  readonly notices: readonly Problem[];
}

const DEFAULTS: Omit<PlannerOptions, "semantics"> = {
  nodeName: "",
  families: ["IPv4", "IPv6"],
  nodeIPs: {},
  detectors: {},
  nodePortAddresses: {},
  masqueradeAll: false,
};

const NO_MEMORY: OwnershipMemory = { get: () => undefined };

/**
 * Plans for Kubernetes objects as they are now; `Planner` follows them while they change.
 *
 * @param objects Services and EndpointSlices as the API has them, also in a List (`kubectl get -o json`); objects of
 *   other kinds are passed over. Of two with one kind, namespace and name the last that can be used counts.
 */
export function planOnce(objects: Iterable<unknown>, options: PlanOnceOptions): PlannedOnce {
  const { serviceProxyName, ...rest } = options;
  const state = new ClusterState();
  const { preserveDestination } = options.semantics;
  const asked = preserveDestination === undefined ? {} : { annotations: new Set([preserveDestination]) };
  const problems: Problem[] = [];
  const notices: Problem[] = [];
  for (const raw of withoutLists(objects)) {
    const { kind } = fieldsOf(raw);
    if (kind === "Service") {
      const decoded = decodeService(raw, undefined, { ...(serviceProxyName && { serviceProxyName }), ...asked });
      if (decoded.object !== undefined) state.upsertService(decoded.object);
      problems.push(...decoded.problems);
      notices.push(...(decoded.notices ?? []));
    } else if (kind === "EndpointSlice") {
      const decoded = decodeEndpointSlice(raw);
      if (decoded.object !== undefined) state.upsertSlice(decoded.object);
      problems.push(...decoded.problems);
      notices.push(...(decoded.notices ?? []));
    }
  }
  const { planner, step } = toEnd(planState(state, { ...DEFAULTS, ...rest }));
  const plans = { IPv4: planner.plan("IPv4"), IPv6: planner.plan("IPv6") };
  return { plans, problems: [...problems, ...step.problems], notices: [...notices, ...step.notices] };
}

/** What an API server answers for a collection has its objects without their kind. */
function* withoutLists(objects: Iterable<unknown>): Generator<unknown, void, void> {
  for (const raw of objects) {
    const { kind, items } = fieldsOf(raw);
    const [, of] = (typeof kind === "string" ? /^(Service|EndpointSlice|)List$/.exec(kind) : undefined) ?? [];
    if (of === undefined) yield raw;
    else for (const one of withoutLists(itemsOf(items))) yield of === "" ? one : { kind: of, ...fieldsOf(one) };
  }
}

/**
 * The same for objects that are decoded, in steps: it yields after each service.
 *
 * @param services default: all
 */
export function* planState(
  state: ClusterView,
  options: PlannerOptions,
  services: Iterable<ServiceKey> | "all" = "all",
  memory: OwnershipMemory = NO_MEMORY,
): Generator<void, { readonly planner: Planner; readonly step: PlanStep }, void> {
  const planner = new Planner(options);
  return { planner, step: yield* planner.replan(state, services, memory) };
}
