/** What is asked for, and which specs that is. */

import type { IPFamily } from "@fairlead/core";
import { type CniFlavor, loadFlavor } from "@fairlead/lab/cni/flavor";
import type { ClusterShape } from "@fairlead/lab/provider/cluster";
import { providers } from "@fairlead/lab/provider/index";
import type { ClusterRequest, Provider } from "@fairlead/lab/provider/provider";
import { titleOf } from "../report.ts";
import { type Spec, type SpecPackage, type Suite, subjectsOf } from "../specs/spec.ts";
import { type RunOptions, UsageError } from "./options.ts";

export interface PlannedSpec {
  readonly spec: Spec;
  readonly family: IPFamily;
  readonly title: string;
  /** Why this cluster cannot carry it. */
  readonly unfit: string | undefined;
}

interface SpecSelection {
  readonly suites: readonly Suite[];
  readonly subject?: SpecPackage | undefined;
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

/** The family as a part of a name: none in specs that are not run for each. */
export function familyField({ eachFamily = true }: Spec, family: IPFamily): { readonly family?: IPFamily } {
  return eachFamily ? { family } : {};
}

export function planText(shape: ClusterShape, planned: readonly PlannedSpec[], kubernetes: string): string {
  const networks = shape.networks.map(({ name, excluded, ownLoadBalancer }) => {
    const notes = [...(excluded ? ["excluded"] : []), ...(ownLoadBalancer ? ["own load balancer"] : [])];
    return notes.length === 0 ? name : `${name} (${notes.join(", ")})`;
  });
  const fit = planned.filter(({ unfit }) => unfit === undefined).length;
  return [
    `${shape.provider}: Kubernetes ${kubernetes}, ${shape.nodeNames.length} nodes, ${shape.families.join(" and ")}`,
    `  pod networks: ${networks.join(", ")}; Fairlead in ${shape.mode} mode`,
    `  ${fit} specs${fit < planned.length ? `, ${planned.length - fit} that this cluster cannot carry` : ""}`,
  ].join("\n");
}

interface Requested {
  readonly provider: Provider;
  readonly requests: readonly ClusterRequest[];
}

export async function readRequest(options: RunOptions): Promise<Requested> {
  const provider = providers.get(options.provider);
  if (provider === undefined) {
    throw new UsageError(`--provider ${options.provider}: give one of ${[...providers.keys()].join(", ")}`);
  }
  const known = await provider.flavors();
  const strange = options.cni.find((name) => !known.includes(name));
  if (strange !== undefined) throw new UsageError(`--cni ${strange}: ${provider.name} has ${known.join(", ")}`);
  const flavors = await Promise.all(options.cni.map(loadFlavor));
  const names = flavors.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new UsageError(`--cni ${options.cni.join(",")}: a cluster has one ${twice}`);
  const { cni, nodes, families, kubernetes } = options;
  const overlay = await overlayOf(provider, options);
  const common = { cni, excluded: excludedOf(flavors), nodes, families, kubernetes, ...overlay };
  return { provider, requests: options.modes.map((mode) => ({ ...common, mode })) };
}

function familiesOf({ eachFamily = true }: Spec, { families }: ClusterShape): readonly IPFamily[] {
  return eachFamily ? families : families.slice(0, 1);
}

function plan(spec: Spec, family: IPFamily, shape: ClusterShape): PlannedSpec {
  const title = titleOf({ name: spec.name, ...familyField(spec, family) });
  return { spec, family, title, unfit: spec.unfit?.(shape, family) };
}

async function overlayOf(provider: Provider, { overlay }: RunOptions): Promise<Pick<ClusterRequest, "overlay">> {
  if (overlay === undefined) return {};
  const known = (await provider.overlays?.()) ?? [];
  if (known.includes(overlay)) return { overlay };
  throw new UsageError(`--overlay ${overlay}: ${provider.name} has ${known.join(", ") || "no manifests"}`);
}

/**
 * The networks that Fairlead ignores. Of several networks: those with a load balancer of their own; without such a
 * network, the last, so that there is one. A single network is never excluded.
 */
function excludedOf(flavors: readonly CniFlavor[]): readonly string[] {
  const names = flavors.map(({ name }) => name);
  if (names.length === 1) return [];
  const own = flavors.filter(({ ownLoadBalancer }) => ownLoadBalancer).map(({ name }) => name);
  return own.length > 0 && own.length < names.length ? own : names.slice(-1);
}
