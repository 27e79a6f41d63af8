/** What a step of the planner reports: changes, problems, conflicts and ownership. */

import type { DecidedBy, Ownership, OwnershipDecision } from "../filter.ts";
import type { IPFamily, ServiceKey } from "../objects.ts";
import type { FrontendKind, PlanChange, ServicePortGroup } from "../plan.ts";
import { type Problem, separated } from "../problem.ts";
import type { FrontendClaims } from "./frontends.ts";
import { draftClaimKey } from "./group.ts";
import { problemOf } from "./notices.ts";
import type { ServiceDraft, ServiceRecord } from "./service-plan.ts";

/** One update of the ownership memory that the caller has to keep; without `ownership` the entry is to be forgotten. */
export interface MemoryUpdate {
  /** The service that was decided. */
  readonly service: ServiceKey;
  /** The family that was decided. */
  readonly family: IPFamily;
  /** What to keep. */
  readonly ownership?: Ownership;
}

/** A service went from one owner to another; one log line. */
export interface OwnershipChange {
  /** The service that changed hands. */
  readonly service: ServiceKey;
  /** The family in which it did. */
  readonly family: IPFamily;
  /** The owner before. */
  readonly from: Ownership;
  /** The owner from now on. */
  readonly to: Ownership;
  /** A sentence for the operator. */
  readonly why: string;
  /** What decided; absent where the service is gone. */
  readonly decidedBy?: DecidedBy;
}

/** The decision that holds for a service in one family. */
export interface ServiceOwnership {
  /** The service that the decision is about. */
  readonly service: ServiceKey;
  /** The family that it is about. */
  readonly family: IPFamily;
  /** The decision itself, with its reasons. */
  readonly decision: OwnershipDecision;
}

/** A group as it was, with those frontends only that another network has taken over. */
export interface ReleasedGroup extends ServicePortGroup {
  /** The CIDRs of the clients that the other network has taken over, canonical; absent: all clients. */
  readonly clients?: readonly string[];
  /**
   * Present where it is unknown which endpoints it was proxied to, since another process did that: whether an
   * address may be one of the other network's, so that a flow that it answers need not be ours.
   */
  readonly mayBeForeign?: (address: string) => boolean;
}

/** What one planning step came to. */
export interface PlanStep {
  /** The families in which anything changed. */
  readonly changes: ReadonlyMap<IPFamily, PlanChange>;
  /** Updates of the ownership memory, in the order in which they were decided. */
  readonly memory: readonly MemoryUpdate[];
  /** Services that changed hands, for the log. */
  readonly ownershipChanges: readonly OwnershipChange[];
  /**
   * What another network has taken over in this step. Flows that our own DNAT made are to be deleted once
   * (`releasedFlows`).
   */
  readonly released: readonly ReleasedGroup[];
  /** Bad annotations and frontends that two services claim, each reported once when it begins. */
  readonly problems: readonly Problem[];
  /** What of a service is valid and does other than it seems to ask for, each reported once when it begins. */
  readonly notices: readonly Problem[];
}

/** Gauges of one family, kept up with every change. */
export interface PlanCounts {
  /** Services that have a ClusterIP in the family, by ownership. */
  readonly services: Readonly<Record<Ownership, number>>;
  /** Distinct endpoint addresses left out by the filter, summed over services. */
  readonly endpointsExcluded: number;
  /** Service ports with endpoints but none here, under internal and external policy Local. */
  readonly noLocalEndpoints: { readonly internal: number; readonly external: number };
}

/** A frontend that another service holds. */
interface Conflict {
  readonly claim: string;
  /** What to report when the step is over; undefined: the service has it by then. */
  readonly problem: () => Problem | undefined;
}

/**
 * Gathers what a planning step comes to, alongside the plan's own change. A service planned twice in a step counts
 * once.
 */
export class StepCollector {
  readonly #memory = new Map<string, MemoryUpdate>();
  readonly #ownership = new Map<string, OwnershipChange>();
  readonly #released = new Map<string, ReleasedGroup>();
  readonly #problems: Problem[] = [];
  readonly #conflicts = new Map<string, Conflict["problem"]>();

  remember(service: ServiceKey, family: IPFamily, remembered: Ownership | undefined, now: OwnershipDecision): void {
    if (!now.decided || now.ownership === remembered) return;
    this.#memory.set(`${family} ${service}`, { service, family, ownership: now.ownership });
  }

  forget(service: ServiceKey, family: IPFamily, remembered: Ownership | undefined): void {
    if (remembered !== undefined) this.#memory.set(`${family} ${service}`, { service, family });
  }

  changeOwner(service: ServiceKey, family: IPFamily, from: Ownership | undefined, now: OwnershipDecision): void {
    const to = now.ownership;
    if (from === undefined || from === to) return;
    const { why, decidedBy } = now;
    const change = { service, family, from, to, why, ...(decidedBy && { decidedBy }) };
    this.#ownership.set(`${family} ${service}`, change);
  }

  release(groups: readonly ReleasedGroup[]): void {
    for (const group of groups) this.#released.set(`${group.family} ${group.id}`, group);
  }

  /** Who holds a frontend in the end is known when the step is over: till then it may go from one to the next. */
  lose(service: ServiceKey, family: IPFamily, conflicts: readonly Conflict[]): void {
    for (const { claim, problem } of conflicts) this.#conflicts.set(`${family} ${service} ${claim}`, problem);
  }

  report(problems: readonly Problem[]): void {
    for (const problem of problems) this.#problems.push(problem);
  }

  finish(changes: ReadonlyMap<IPFamily, PlanChange>): PlanStep {
    const { problems, notices = [] } = separated(this.#problems);
    return {
      changes,
      memory: [...this.#memory.values()],
      ownershipChanges: [...this.#ownership.values()],
      released: [...this.#released.values()],
      problems: [...problems, ...[...this.#conflicts.values()].flatMap((problem) => problem() ?? [])],
      notices,
    };
  }
}

type Claims = Pick<FrontendClaims, "holder" | "foreignHolder">;

const FIELDS: Readonly<Record<FrontendKind, string>> = {
  "cluster-ip": "spec.clusterIPs",
  "external-ip": "spec.externalIPs",
  "load-balancer": "status.loadBalancer.ingress",
  "node-port": "spec.ports",
};

/** The frontends that a service lost by this change: what was so before has been reported. */
export function newConflicts(
  draft: ServiceDraft,
  before: ServiceRecord | undefined,
  after: ServiceRecord,
  claims: Claims,
): readonly Conflict[] {
  const known = new Set(before?.lost.flatMap(({ keys }) => keys));
  const lost = after.lost.flatMap(({ group, keys }) => keys.map((claim) => ({ group, claim })));
  const fresh = lost.filter(({ claim }) => !known.has(claim));
  if (fresh.length === 0) return [];
  const kinds = kindsByClaim(draft);
  return fresh.map(({ group, claim }) => {
    const kind = kinds.get(claim);
    const field = kind === undefined ? "spec" : FIELDS[kind];
    return {
      claim,
      problem: () => {
        const reason = whyLost(group, claim, claims);
        return reason === undefined
          ? undefined
          : problemOf(draft.input.service, { field, value: JSON.stringify(claim), reason });
      },
    };
  });
}

function whyLost(group: string, claim: string, claims: Claims): string | undefined {
  const foreign = claims.foreignHolder(claim);
  if (foreign !== undefined) return `is the ClusterIP of ${foreign}, which another network serves`;
  const holder = claims.holder(claim);
  return holder === group ? undefined : `already belongs to ${holder ?? "another service"} and is only served for it`;
}

/** Of an address that stands in several fields it is the first of them. */
function kindsByClaim(draft: ServiceDraft): ReadonlyMap<string, FrontendKind> {
  const kinds = new Map<string, FrontendKind>();
  for (const group of draft.groups) {
    for (const spec of group.frontends) {
      const key = draftClaimKey(group, spec);
      if (!kinds.has(key)) kinds.set(key, spec.kind);
    }
  }
  return kinds;
}
