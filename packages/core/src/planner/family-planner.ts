/** Plans one address family: which services are planned again, which network owns them, and what is released. */

import { familyOf } from "@fairlead/base";
import type { ClusterView } from "../cluster-state.ts";
import { equal, TURN } from "../data.ts";
import type { FilterEndpoint, Ownership, OwnershipDecision, OwnershipMemory } from "../filter.ts";
import type { EndpointSlice, IPFamily, Protocol, Service, ServiceKey, SliceEndpoint } from "../objects.ts";
import type { Frontend, ServicePortGroup } from "../plan.ts";
import { claimKey, FrontendClaims, type FrontendLookup } from "./frontends.ts";
import { LivePlan } from "./live-plan.ts";
import { freshProblems, serviceProblems } from "./notices.ts";
import { nodePlan, type PlannerOptions } from "./options.ts";
import {
  claimsOfDraft,
  claimsOfRecord,
  draftService,
  finishService,
  type ServiceDraft,
  type ServiceRecord,
  serviceEndpoints,
} from "./service-plan.ts";
import { newConflicts, type PlanCounts, type ReleasedGroup, type StepCollector } from "./step.ts";
import { isLeft } from "./treatments.ts";

interface StepInput {
  readonly state: ClusterView;
  readonly memory: OwnershipMemory;
  readonly options: PlannerOptions;
  readonly step: StepCollector;
}

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
    if (draft === undefined && before === undefined) {
      this.#recordGone(key, input);
      return [];
    }
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
    const draft = draftService({ key, service, family, slices, options }, clusterIP, decision);
    const problems = serviceProblems(draft);
    return problems.length === 0 ? draft : { ...draft, problems };
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
    step.report(freshProblems(draft.problems, before?.problems));
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

/** Decides whose a service is in a family; without a filter it is ours. */
function decideOwnership(
  { filter, semantics }: Pick<PlannerOptions, "filter" | "semantics">,
  service: Service,
  family: IPFamily,
  slices: readonly EndpointSlice[],
  remembered: Ownership | undefined,
): OwnershipDecision {
  const endpoints = endpointsOf(slices, family);
  const decision = filter?.decide(service, family, endpoints, remembered) ?? withoutFilter(endpoints, remembered);
  if (decision.frontends !== "all-but-excluded-clients" || semantics.excludesClients) return decision;
  if (decision.protected === true) {
    const why = `${decision.why}; in this mode for all clients, so it is served here`;
    return { ...decision, ownership: "ours", frontends: "all", why };
  }
  // To take all of an address would be to take the other network's own clients as well.
  return { ...decision, frontends: "all-but-cluster-ip", why: `${decision.why}; in this mode for all clients` };
}

/** What holds where nothing is excluded. It needs no memory, and only corrects one that says otherwise. */
function withoutFilter(endpoints: readonly FilterEndpoint[], remembered?: Ownership): OwnershipDecision {
  return {
    ownership: "ours",
    decided: remembered !== undefined && remembered !== "ours",
    why: "no cluster CIDR is excluded",
    frontends: "all",
    decidingCIDRs: NONE,
    ownEndpoints: new Set(endpoints.map(({ address }) => address)).size,
    excludedEndpoints: 0,
  };
}

const NONE: readonly string[] = [];

function endpointsOf(slices: readonly EndpointSlice[], family: IPFamily): readonly SliceEndpoint[] {
  return slices.flatMap((slice) => (slice.family === family ? slice.endpoints : []));
}

function clusterIPOf(service: Service, family: IPFamily): string | undefined {
  return service.clusterIPs.find((ip) => familyOf(ip) === family);
}

/**
 * What of `before` another network has taken over: the groups with only those frontends that `after` no longer has, or
 * leaves to it, be it for other clients than before only.
 */
function releasedGroups(
  before: readonly ServicePortGroup[],
  after: readonly ServicePortGroup[],
): readonly ReleasedGroup[] {
  return before.flatMap((group) => {
    const now = after.find((other) => other.id === group.id)?.frontends ?? [];
    const nowOf = (frontend: Frontend) => now.find((other) => isSame(frontend, other) && !isLeft(other));
    const frontends = group.frontends.filter((one) => !isLeft(one) && !serves(nowOf(one), one));
    if (frontends.length === 0) return [];
    const clients = clientsOf(frontends.map((one) => nowOf(one)?.excludedClients));
    return [{ ...group, frontends, ...(clients && { clients }) }];
  });
}

/** Undefined where any of the frontends is left for all clients. */
function clientsOf([first, ...others]: readonly Frontend["excludedClients"][]): readonly string[] | undefined {
  return others.every((one) => equal(one, first)) ? first : undefined;
}

/**
 * The same for a proxy that starts after the change of owner: the frontends that the service would have if it were
 * ours.
 * Which endpoints it was proxied to is lost, those that it has now may well be the other network's, and an entry to a
 * node port's number may be another program's.
 */
function releasedUnseen(draft: ServiceDraft, after: readonly ServicePortGroup[]): readonly ReleasedGroup[] {
  const { slices, family, options } = draft.input;
  const { filter } = options;
  if (filter?.isForeign === undefined) return [];
  const now = new Set(endpointsOf(slices, family).map(({ address }) => address));
  const mayBeForeign = (address: string) => now.has(address) || (filter.isForeign?.(address) ?? true);
  return releasedGroups(asIfOurs(draft), after).flatMap((group) => {
    const frontends = group.frontends.filter(({ at }) => at !== "node-port");
    return frontends.length === 0 ? [] : [{ ...group, frontends, mayBeForeign }];
  });
}

function asIfOurs(draft: ServiceDraft): readonly ServicePortGroup[] {
  const ours = draftService(draft.input, draft.clusterIP, withoutFilter([]));
  const owners = new Map(ours.ours.flatMap(({ group, keys }) => keys.map((key) => [key, group])));
  // Without endpoints: nothing asks for them.
  return finishService(ours, (key) => owners.get(key), { groups: new Map(), localReady: 0 }).groups;
}

/** Whether no client that `before` may have served is left now. */
function serves(now: Frontend | undefined, before: Frontend): boolean {
  if (now === undefined) return false;
  return now.excludedClients === undefined || equal(now.excludedClients, before.excludedClients);
}

function isSame(a: Frontend, b: Frontend): boolean {
  return a.kind === b.kind && a.address === b.address && a.port === b.port;
}

/** Gauges of a family, kept up by what each service adds to them. */
class FamilyCounts implements PlanCounts {
  readonly services: Record<Ownership, number> = { ours: 0, foreign: 0, mixed: 0 };
  readonly noLocalEndpoints = { internal: 0, external: 0 };
  endpointsExcluded = 0;

  replace(before: ServiceRecord | undefined, after: ServiceRecord | undefined): void {
    if (before !== undefined) this.#add(before, -1);
    if (after !== undefined) this.#add(after, 1);
  }

  #add(record: ServiceRecord, sign: 1 | -1): void {
    this.services[record.decision.ownership] += sign;
    this.endpointsExcluded += sign * leftOut(record.decision);
    this.noLocalEndpoints.internal += sign * record.noLocalInternal;
    this.noLocalEndpoints.external += sign * record.noLocalExternal;
  }
}

/** Excluded endpoints that really get nothing from us: a decision for all of them leaves none out. */
function leftOut(decision: OwnershipDecision): number {
  return decision.frontends === "none" || decision.excludes !== undefined ? decision.excludedEndpoints : 0;
}
