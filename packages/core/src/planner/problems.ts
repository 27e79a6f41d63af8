import type { FrontendKind } from "../plan.ts";
import type { Problem } from "../problem.ts";
import type { FrontendSpec } from "./frontend-spec.ts";
import { draftClaimKey } from "./group-draft.ts";
import type { Holder, ServiceDraft, ServiceRecord } from "./service-plan.ts";

const FIELDS: Readonly<Record<FrontendKind, string>> = {
  "cluster-ip": "spec.clusterIPs",
  "external-ip": "spec.externalIPs",
  "load-balancer": "status.loadBalancer.ingress",
  "node-port": "spec.ports",
};

/** What is wrong with a service since this change: what was so before has been reported. */
export function newProblems(
  draft: ServiceDraft,
  before: ServiceRecord | undefined,
  after: ServiceRecord,
  holder: Holder,
): readonly Problem[] {
  const known = new Set(before?.lost.flatMap(({ keys }) => keys));
  const lost = after.lost.flatMap(({ keys }) => keys).filter((key) => !known.has(key));
  return [
    ...annotationProblem(draft, before),
    ...lost.map((key) => conflict(draft, key, holder(key) ?? "another service")),
  ];
}

function annotationProblem(draft: ServiceDraft, before: ServiceRecord | undefined): readonly Problem[] {
  const reason = draft.decision.problem;
  if (reason === undefined || reason === before?.decision.problem) return [];
  return [problem(draft, "metadata.annotations", "", reason)];
}

function conflict(draft: ServiceDraft, key: string, holder: string): Problem {
  const spec = specOf(draft, key);
  const field = spec === undefined ? "spec" : FIELDS[spec.kind];
  return problem(draft, field, JSON.stringify(key), `is ${holder}'s already; it is served for that one alone`);
}

function specOf(draft: ServiceDraft, key: string): FrontendSpec | undefined {
  for (const group of draft.groups) {
    const found = group.frontends.find((spec) => draftClaimKey(group, spec) === key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function problem(draft: ServiceDraft, field: string, value: string, reason: string): Problem {
  const { namespace, name } = draft.input.service;
  return { kind: "Service", namespace, name, field, value, reason };
}
