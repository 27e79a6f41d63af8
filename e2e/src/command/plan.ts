import type { IPFamily } from "@fairlead/core";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { titleOf } from "../report/outcome.ts";
import { type Spec, type SpecPackage, type Suite, subjectsOf } from "../specs/spec.ts";

/** One spec that a run asks for. */
export interface PlannedSpec {
  readonly spec: Spec;
  /** What it is run for. */
  readonly family: IPFamily;
  readonly title: string;
  /** Why this cluster cannot carry it. */
  readonly unfit: string | undefined;
}

export interface SpecSelection {
  readonly suites: readonly Suite[];
  readonly subject?: SpecPackage | undefined;
  /** Of the title. */
  readonly pattern: RegExp | undefined;
}

/** Which specs are run on a cluster, once for each family, and which it cannot carry. */
export function planSpecs(
  specs: readonly Spec[],
  shape: ClusterShape,
  { suites, subject, pattern }: SpecSelection,
): readonly PlannedSpec[] {
  return specs
    .filter(({ suite }) => suites.includes(suite))
    .filter((spec) => subject === undefined || subjectsOf(spec).includes(subject))
    .flatMap((spec) => familiesOf(spec, shape).map((family) => plan(spec, family, shape)))
    .filter(({ title }) => pattern === undefined || pattern.test(title));
}

function familiesOf({ eachFamily = true }: Spec, { families }: ClusterShape): readonly IPFamily[] {
  return eachFamily ? families : families.slice(0, 1);
}

function plan(spec: Spec, family: IPFamily, shape: ClusterShape): PlannedSpec {
  const title = titleOf({ name: spec.name, ...familyField(spec, family) });
  return { spec, family, title, unfit: spec.unfit?.(shape, family) };
}

/** The family as a part of a name: none in specs that are not run for each. */
export function familyField({ eachFamily = true }: Spec, family: IPFamily): { readonly family?: IPFamily } {
  return eachFamily ? { family } : {};
}

export function planText(shape: ClusterShape, planned: readonly PlannedSpec[], kubernetes: string): string {
  const networks = shape.networks.map(({ name, excluded, ownLoadBalancer }) => {
    const notes = [...(excluded ? ["excluded"] : []), ...(ownLoadBalancer ? ["own load balancer"] : [])];
    return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
  });
  const excluded = shape.elsewhere === undefined ? [] : ["elsewhere (excluded)"];
  const fit = planned.filter(({ unfit }) => unfit === undefined).length;
  return [
    `${shape.provider}: Kubernetes ${kubernetes}, ${shape.nodeNames.length} nodes, ${shape.families.join(" and ")}`,
    `  pod networks: ${[...networks, ...excluded].join(", ")}; Fairlead in ${shape.mode} mode`,
    `  ${fit} specs${fit < planned.length ? `, ${planned.length - fit} that this cluster cannot carry` : ""}`,
  ].join("\n");
}
