import { fieldsOf, itemsOf, type RawObject } from "@fairlead/base";
import { otherProxy, type Placement, PROXY_LABEL, type ProxyName } from "../plan/state.ts";
import { podSpecOf } from "./pod-spec.ts";

interface Requirement {
  readonly key: string;
  readonly operator: "In" | "NotIn";
  readonly values: readonly ProxyName[];
}

/** Where a DaemonSet places its pods, as far as a migration has a say in it. */
export function placementOf(proxy: ProxyName, daemonSet: unknown): Placement {
  const terms = termsOf(daemonSet);
  if (terms.length === 0) return "everywhere";
  const own = terms.map((term) => itemsOf(term["matchExpressions"]).map(fieldsOf).filter(isOwn));
  for (const placement of ["unless-other", "labeled"] as const) {
    const wanted = JSON.stringify(requirementOf(proxy, placement));
    if (own.every(([only, ...more]) => more.length === 0 && only !== undefined && isSame(only, wanted)))
      return placement;
  }
  return "everywhere";
}

/**
 * What `kubectl patch --type=merge` takes, so that a DaemonSet places its pods so. All else that it asks of nodes
 * stays. Terms are alternatives: each of them gets the requirement.
 */
export function placementPatch(proxy: ProxyName, daemonSet: unknown, placement: Placement): object {
  const requiredDuringSchedulingIgnoredDuringExecution =
    placement === "everywhere" ? without(daemonSet) : { nodeSelectorTerms: placedTerms(proxy, daemonSet, placement) };
  const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution } };
  return { spec: { template: { spec: { affinity } } } };
}

/** The requirement of a placement; undefined for every node. */
function requirementOf(proxy: ProxyName, placement: Placement): Requirement | undefined {
  if (placement === "everywhere") return undefined;
  const [operator, value] =
    placement === "labeled" ? (["In", proxy] as const) : (["NotIn", otherProxy(proxy)] as const);
  return { key: PROXY_LABEL, operator, values: [value] };
}

/** The terms as they are to be. */
export function placedTerms(proxy: ProxyName, daemonSet: unknown, placement: Placement): readonly object[] {
  const requirement = requirementOf(proxy, placement);
  const terms = bareTerms(daemonSet);
  if (requirement === undefined) return terms;
  return (terms.length === 0 ? [{}] : terms).map((term: RawObject) => ({
    ...term,
    matchExpressions: [...itemsOf(term["matchExpressions"]), requirement],
  }));
}

function without(daemonSet: unknown): object | null {
  const terms = bareTerms(daemonSet);
  return terms.length === 0 ? null : { nodeSelectorTerms: terms };
}

/** The terms without what a migration added; one that had nothing else was added as a whole. */
function bareTerms(daemonSet: unknown): readonly RawObject[] {
  return termsOf(daemonSet).flatMap((term) => {
    const expressions = itemsOf(term["matchExpressions"]);
    const kept = expressions.filter((one) => !isOwn(fieldsOf(one)));
    if (kept.length === expressions.length) return [term];
    const { matchExpressions: _, ...rest } = term;
    if (kept.length > 0) return [{ ...rest, matchExpressions: kept }];
    return Object.keys(rest).length === 0 ? [] : [rest];
  });
}

function termsOf(daemonSet: unknown): readonly RawObject[] {
  const affinity = fieldsOf(fieldsOf(podSpecOf(daemonSet)["affinity"])["nodeAffinity"]);
  const required = fieldsOf(affinity["requiredDuringSchedulingIgnoredDuringExecution"]);
  return itemsOf(required["nodeSelectorTerms"]).map(fieldsOf);
}

function isOwn({ key }: RawObject): boolean {
  return key === PROXY_LABEL;
}

function isSame({ key, operator, values }: RawObject, wanted: string): boolean {
  return JSON.stringify({ key, operator, values }) === wanted;
}
