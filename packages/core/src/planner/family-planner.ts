import { TURN } from "../data/sort-in-steps.ts";
import type { Ownership, OwnershipDecision, OwnershipMemory } from "../filter.ts";
import type { IPFamily, Protocol, ServiceKey } from "../objects.ts";
import type { ServicePortGroup } from "../plan.ts";
import type { ClusterView } from "../state/view.ts";
import { FamilyCounts } from "./family-counts.ts";
import { FrontendClaims } from "./frontend-claims.ts";
import { claimKey } from "./frontend-spec.ts";
import { LivePlan } from "./live-plan.ts";
import type { FrontendLookup } from "./lookup.ts";
import { nodePlan, type PlannerOptions } from "./options.ts";
import { clusterIPOf, decideOwnership } from "./ownership.ts";
import { annotationProblems, newConflicts } from "./problems.ts";
import { releasedGroups, releasedUnseen } from "./released.ts";
import {
  claimsOfDraft,
  claimsOfRecord,
  draftService,
  finishService,
  type ServiceDraft,
  type ServiceRecord,
  serviceEndpoints,
} from "./service-plan.ts";
import type { ReleasedGroup } from "./step.ts";
import type { StepCollector } from "./step-collector.ts";
import { isLeft } from "./treatments.ts";

/** What one planning step works with. */
export interface StepInput {
  readonly state: ClusterView;
  readonly memory: OwnershipMemory;
  readonly options: PlannerOptions;
  readonly step: StepCollector;
}

/** Plans one family, service by service. */
export class FamilyPlanner implements FrontendLookup {
  readonly family: IPFamily;
  readonly plan: LivePlan;
  readonly counts = new FamilyCounts();
  readonly #records = new Map<ServiceKey, ServiceRecord>();
  readonly #claims = new FrontendClaims();

  constructor(family: IPFamily, options: PlannerOptions) {
    this.family = family;
    this.plan = new LivePlan(family, nodePlan(options, family));
  }

  at(protocol: Protocol, address: string, port: number): ServicePortGroup | undefined {
    return this.#holding(claimKey(protocol, address, port));
  }

  atNodePort(protocol: Protocol, port: number): ServicePortGroup | undefined {
    return this.#holding(claimKey(protocol, undefined, port));
  }

  keys(): Iterable<ServiceKey> {
    return this.#records.keys();
  }

  /** The services that are served to some clients and not to others. */
  *dividedServices(): Generator<ServiceKey> {
    for (const [key, { decision }] of this.#records) if (decision.frontends === "all-but-excluded-clients") yield key;
  }

  /** The services that choose on which of the node's addresses their node ports are. */
  *choosingServices(): Generator<ServiceKey> {
    for (const [key, { nodePorts }] of this.#records) if (nodePorts !== undefined) yield key;
  }

  decision(key: ServiceKey): OwnershipDecision | undefined {
    return this.#records.get(key)?.decision;
  }

  /**
   * Plans one service anew; gives the others that gained or lost a frontend by it and have to be planned as well.
   * Yields while it looks at very many endpoints, and then nothing is changed yet.
   */
  *replan(key: ServiceKey, input: StepInput): Generator<void, readonly ServiceKey[]> {
    const draft = yield* this.#draft(key, input);
    const before = this.#records.get(key);
    const endpoints = draft && (yield* serviceEndpoints(draft, before?.groups));
    const moved = this.#claims.replace(key, before && claimsOfRecord(before), draft && claimsOfDraft(draft));
    const after = draft && endpoints && finishService(draft, this.#holder, endpoints);
    this.#store(key, before, after);
    if (draft !== undefined && after !== undefined) this.#recordChange(draft, before, after, input);
    else this.#recordGone(key, input);
    return moved;
  }

  *#draft(key: ServiceKey, { state, memory, options }: StepInput): Generator<void, ServiceDraft | undefined> {
    const { family } = this;
    const service = options.families.includes(family) ? state.service(key) : undefined;
    const clusterIP = service && clusterIPOf(service, family);
    if (service === undefined || clusterIP === undefined) return undefined;
    const slices = state.slices(key);
    if (slices.length > TURN) yield;
    const decision = decideOwnership(options, service, family, slices, memory.get(key, family));
    return draftService({ key, service, family, slices, options }, clusterIP, decision);
  }

  #store(key: ServiceKey, before: ServiceRecord | undefined, after: ServiceRecord | undefined): void {
    this.plan.replace(key, before, after);
    this.counts.replace(before, after);
    if (after === undefined) this.#records.delete(key);
    else this.#records.set(key, after);
  }

  #recordChange(draft: ServiceDraft, before: ServiceRecord | undefined, after: ServiceRecord, input: StepInput): void {
    const { step, memory } = input;
    const { decision } = draft;
    const { key } = draft.input;
    const remembered = memory.get(key, this.family);
    step.remember(key, this.family, remembered, decision);
    step.changeOwner(key, this.family, before?.decision.ownership ?? remembered, decision);
    step.release(this.#released(draft, before, after, remembered));
    step.report(annotationProblems(draft, before));
    step.lose(key, this.family, newConflicts(draft, before, after, this.#claims));
  }

  #recordGone(key: ServiceKey, { step, memory, options }: StepInput): void {
    if (options.families.includes(this.family)) step.forget(key, this.family, memory.get(key, this.family));
  }

  #released(
    draft: ServiceDraft,
    before: ServiceRecord | undefined,
    after: ServiceRecord,
    remembered: Ownership | undefined,
  ): readonly ReleasedGroup[] {
    if (draft.decision.frontends === "all") return [];
    if (before !== undefined) {
      const { frontends } = draft.decision;
      const same = before.decision.frontends === frontends && frontends !== "all-but-excluded-clients";
      return same ? [] : releasedGroups(before.groups, after.groups);
    }
    const wasOurs = remembered !== undefined && remembered !== draft.decision.ownership;
    return wasOurs ? releasedUnseen(draft, after.groups) : [];
  }

  #holding(key: string): ServicePortGroup | undefined {
    const id = this.#claims.holder(key);
    const group = id === undefined ? undefined : this.plan.groups.get(id);
    return group === undefined || leaves(group, key) ? undefined : group;
  }

  readonly #holder = (key: string): string | undefined => this.#claims.holder(key);
}

/** Whether the frontend of a claim is one that the group leaves to another network. */
function leaves({ protocol, frontends }: ServicePortGroup, claim: string): boolean {
  return frontends.some((one) => isLeft(one) && claimKey(protocol, one.address, one.port) === claim);
}
