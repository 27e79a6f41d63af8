/** What a user names: a target, a namespace, and what may have been meant by a name that there is not. */

import type { ClusterView, ForwardingPlan, ServiceKey } from "@fairlead/core";
import { type PlannedNode, parseTarget, type Target } from "@fairlead/inspect";
import { distance } from "fastest-levenshtein";
import type { sourceOptions } from "../facts/options.ts";
import type { OptionValues } from "../frame/command.ts";
import type { Context } from "../frame/context.ts";
import { CommandFailure, UsageError } from "../frame/errors.ts";
import { clusterNow } from "./source.ts";

/**
 * What a command is asked about, as `parseTarget` reads it.
 *
 * @param namespace of a service that is named without one
 * @param option the option that it stands in; absent: an argument
 */
export function targetOf(text: string, namespace: string, option?: string): Target {
  try {
    return parseTarget(text, namespace);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new UsageError(option === undefined ? error.message : `--${option}: ${error.message}`);
  }
}

/**
 * The services that may have been meant by one that there is not; "": none is like it. All are read anew for it: of
 * manifests only what had to do with the service was.
 */
export async function servicesLike(
  service: ServiceKey,
  options: OptionValues<typeof sourceOptions>,
  context: Context,
): Promise<string> {
  // Standard input was read to its end.
  if (options.file.includes("-")) return "";
  const { state } = await clusterNow(options, { ...context, warn: () => {} }, { slicesOf: () => new Set() });
  return didYouMean(
    service,
    [...state.keys()].filter((key) => state.service(key) !== undefined),
  );
}

/** As many are worth reading. */
const MOST = 3;

/**
 * Names that may have been meant: those with the same last part (`web` is in another namespace), else those that differ
 * in a few letters.
 *
 * @returns `; did you mean shop/web?`, or ""
 */
export function didYouMean(given: string, names: Iterable<string>): string {
  const all = [...names];
  const same = all.filter((name) => lastPart(name) === lastPart(given));
  const meant = same.length > 0 ? same.sort() : similar(given, all);
  return meant.length === 0 ? "" : `; did you mean ${meant.slice(0, MOST).join(" or ")}?`;
}

/** @param given the value of that option */
export function noSuchNode(option: "node" | "on", given: string, names: readonly string[]): CommandFailure {
  const there = `there are: ${names.join(", ")}`;
  return new CommandFailure(`--${option}=${given}: there is no such Node; ${there}${didYouMean(given, names)}`);
}

function similar(given: string, names: readonly string[]): readonly string[] {
  const most = Math.max(1, Math.floor(given.length / 4));
  return names
    .map((name) => ({ name, letters: distance(given, name) }))
    .filter(({ letters }) => letters <= most)
    .sort((a, b) => a.letters - b.letters || (a.name < b.name ? -1 : 1))
    .map(({ name }) => name);
}

function lastPart(name: string): string {
  return name.slice(name.indexOf("/") + 1);
}

/**
 * Whether a service is in the namespace that is asked for.
 *
 * @param namespace undefined: all are
 * @param service `namespace/name`, perhaps with a port behind it
 */
export function isIn(namespace: string | undefined, service: string): boolean {
  return namespace === undefined || service.startsWith(`${namespace}/`);
}

/** @param states a service in one of them will do */
export function demandServices(
  namespace: string | undefined,
  states: readonly ClusterView[],
  left: "compared" | "planned" = "compared",
): void {
  if (namespace === undefined) return;
  for (const state of states) {
    for (const key of state.keys()) if (isIn(namespace, key) && state.service(key) !== undefined) return;
  }
  throw new CommandFailure(`no services found in ${namespace} namespace: nothing was ${left}`);
}

export type Plans = Pick<PlannedNode, "mode" | "nodeName"> & {
  readonly planner: Pick<PlannedNode["planner"], "plan" | "ownerships">;
};

/**
 * The plans of one namespace's services. They are decided with those of all others, which may claim the same addresses.
 *
 * @param namespace undefined: all are
 */
export function plansIn(namespace: string | undefined, { mode, nodeName, planner, state }: PlannedNode): Plans {
  if (namespace === undefined) return { mode, nodeName, planner };
  const own = (service: string) => isIn(namespace, service);
  const foreign = (address: string) => {
    return [...state.keys()].some((key) => own(key) && state.service(key)?.clusterIPs.includes(address) === true);
  };
  const within = (plan: ForwardingPlan): ForwardingPlan => {
    const groups = new Map([...plan.groups].filter(([, { service }]) => own(service)));
    return {
      family: plan.family,
      node: plan.node,
      groups,
      healthChecks: new Map([...plan.healthChecks].filter(([service]) => own(service))),
      foreignClusterIPs: new Set([...plan.foreignClusterIPs].filter(foreign)),
      endpointCount: Array.from(groups.values()).reduce((sum, { endpointCount }) => sum + endpointCount, 0),
    };
  };
  return {
    mode,
    nodeName,
    planner: {
      plan: (family) => within(planner.plan(family)),
      *ownerships() {
        for (const one of planner.ownerships()) if (own(one.service)) yield one;
      },
    },
  };
}
