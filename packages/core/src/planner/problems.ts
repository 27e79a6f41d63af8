import type { FrontendKind } from "../plan.ts";
import { type Problem, printableValue } from "../problem.ts";
import { balanceProblem } from "./balance.ts";
import { fastPathProblem } from "./fast-path.ts";
import { isFirstFamily } from "./first-family.ts";
import type { FrontendClaims } from "./frontend-claims.ts";
import { draftClaimKey } from "./group-draft.ts";
import type { ServiceDraft, ServiceRecord } from "./service-plan.ts";

type Claims = Pick<FrontendClaims, "holder" | "foreignHolder">;

const FIELDS: Readonly<Record<FrontendKind, string>> = {
  "cluster-ip": "spec.clusterIPs",
  "external-ip": "spec.externalIPs",
  "load-balancer": "status.loadBalancer.ingress",
  "node-port": "spec.ports",
};

/** What is wrong with a service's owner and annotations since this change: what was so before has been reported. */
export function annotationProblems(draft: ServiceDraft, before: ServiceRecord | undefined): readonly Problem[] {
  return [
    ...ownershipProblems(draft, before),
    ...balanceProblems(draft, before),
    ...fastPathProblems(draft, before),
    ...nodePortProblems(draft, before),
  ];
}

function ownershipProblems(draft: ServiceDraft, before: ServiceRecord | undefined): readonly Problem[] {
  const reason = draft.decision.problem;
  if (reason === undefined || reason === before?.decision.problem) return [];
  const field = reason.startsWith("annotation ") ? "metadata.annotations" : "spec.clusterIPs";
  return [problem(draft, field, "", reason)];
}

function balanceProblems(draft: ServiceDraft, before: ServiceRecord | undefined): readonly Problem[] {
  const { service, family, options } = draft.input;
  if (draft.groups.length === 0 || !isFirstFamily(service, family, options)) return [];
  const found = balanceProblem(service.annotations, options.semantics);
  const known = before?.groups[0] && balanceProblem(before.groups[0].annotations, options.semantics);
  if (found === undefined || found.reason === known?.reason) return [];
  return [problem(draft, "metadata.annotations", printableValue(found.value), found.reason)];
}

function fastPathProblems(draft: ServiceDraft, before: ServiceRecord | undefined): readonly Problem[] {
  const { service, family, options } = draft.input;
  if (draft.groups.length === 0 || !isFirstFamily(service, family, options)) return [];
  const found = fastPathProblem(service.annotations);
  const known = before?.groups[0] && fastPathProblem(before.groups[0].annotations);
  if (found === undefined || found.value === known?.value) return [];
  return [problem(draft, "metadata.annotations", printableValue(found.value), found.reason)];
}

function nodePortProblems(
  { nodePorts, ...draft }: ServiceDraft,
  before: ServiceRecord | undefined,
): readonly Problem[] {
  const found = nodePorts?.problem;
  if (found === undefined || found.reason === before?.nodePorts?.problem?.reason) return [];
  return [problem(draft, "metadata.annotations", printableValue(found.value), found.reason)];
}

/** A frontend that another service holds. */
export interface Conflict {
  readonly claim: string;
  /** What to report when the step is over; undefined: the service has it by then. */
  readonly problem: () => Problem | undefined;
}

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
        return reason === undefined ? undefined : problem(draft, field, JSON.stringify(claim), reason);
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

function problem(draft: ServiceDraft, field: string, value: string, reason: string): Problem {
  const { namespace, name } = draft.input.service;
  return { kind: "Service", namespace, name, field, value, reason };
}
