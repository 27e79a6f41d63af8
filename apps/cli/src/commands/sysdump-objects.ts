/** The cluster's objects for an archive, as far as it keeps them. */

import { errorText, fieldsOf, stringOf, systemClock, valueAt } from "@fairlead/base";
import { type ReadObjects, readObjects } from "@fairlead/inspect";
import { NetworksOnce, ruleAnnotations } from "@fairlead/intake";
import { createManifestsSnapshot, type OtherResource, type SourceReport } from "@fairlead/watch";
import { forbiddenIn, mayNot } from "../cluster/api-error.ts";
import { otherResource } from "../cluster/resources.ts";
import type { Context } from "../frame/context.ts";
import type { AgentSetup } from "../inputs/agent.ts";
import { apiConnection, apiSource, nodeNameOf } from "../inputs/cluster-access.ts";
import type { ClusterValues } from "../inputs/planned.ts";
import type { Missing } from "../sysdump/dump.ts";
import type { Keep } from "../sysdump/keep.ts";
import { ENDPOINT_SLICE, networkKeep, SERVICE_CIDR, serviceKeep } from "../sysdump/kept-objects.ts";

export interface DumpedObjects {
  readonly objects: readonly object[];
  /** Names of Nodes, in their order. */
  readonly nodes: readonly string[];
  readonly missing: readonly Missing[];
}

/** Milliseconds for all of them: what is not there then is missing. */
const PATIENCE_MS = 60_000;

/** Reads what tools read of a cluster or of manifests. What cannot be read is missing and says why. */
export async function dumpedObjects(
  options: ClusterValues,
  setup: AgentSetup,
  resources: readonly OtherResource[],
  context: Context,
): Promise<DumpedObjects> {
  const wanted = wantedObjects(setup, resources);
  const down = new AbortController();
  const forbidden = new Map<string, string>();
  const onReport = (report: SourceReport) => {
    if (report.type === "failing") down.abort(report.error);
    const refused = report.type === "retry" ? forbiddenIn(report.error) : undefined;
    if (refused !== undefined) forbidden.set(refused.resource, mayNot(refused));
  };
  const { file: paths } = options;
  const nodeName = nodeNameOf(options);
  const { readStandardInput } = context;
  let read: ReadonlyMap<OtherResource, ReadObjects> = new Map();
  try {
    const source =
      paths.length > 0
        ? createManifestsSnapshot({ paths, nodeName, readStandardInput })
        : apiSource(await apiConnection(options, context), { nodeName }, onReport);
    const signal = AbortSignal.any([context.signal, down.signal, AbortSignal.timeout(PATIENCE_MS)]);
    const keep = (raw: unknown, resource: OtherResource) => keptOf(raw, resource, wanted.get(resource));
    read = await readObjects(source, [...wanted.keys()], signal, { keep });
  } catch (error) {
    down.abort(errorText(error));
  }
  const why = stringOf(down.signal.reason) ?? "no answer within a minute";
  const missing = [...wanted.keys()].flatMap((resource) => {
    const state = read.get(resource)?.state;
    if (state === "synced") return [];
    return [
      { what: nameOf(resource), why: forbidden.get(resource.plural) ?? (state === undefined ? why : WHY[state]) },
    ];
  });
  const objects = [...read]
    .flatMap(([{ plural }, found]) => found.objects.map((one) => ({ key: keyOf(one, plural), object: fieldsOf(one) })))
    .sort((one, other) => (one.key < other.key ? -1 : 1));
  const nodes = objects.flatMap(({ key, object }) => (key.startsWith("v1 nodes ") ? [textOf(object, "name")] : []));
  return { objects: objects.map(({ object }) => object), nodes, missing };
}

/** Items of a list say no kind. */
function keptOf(raw: unknown, { group, version: of, kind }: OtherResource, keep?: Keep): object {
  return { ...fieldsOf(keep?.(raw)), apiVersion: group === "" ? of : `${group}/${of}`, kind };
}

function keyOf(object: unknown, plural: string): string {
  return `${fieldsOf(object)["apiVersion"]} ${plural} ${textOf(object, "namespace")}/${textOf(object, "name")}`;
}

/** The resources whose objects the agent reads to learn networks; none where it learns none. */
export function networkResources({ networks }: Pick<AgentSetup, "networks">): readonly OtherResource[] {
  if (networks === undefined) return [];
  const once = new NetworksOnce({ settings: networks, clock: systemClock, onReady: () => {} });
  return once.subscriptions.map(({ resource }) => resource);
}

function wantedObjects({ config }: AgentSetup, resources: readonly OtherResource[]): ReadonlyMap<OtherResource, Keep> {
  const others = resources.filter(({ group, plural }) => group !== "" || plural !== "nodes");
  const networks = [otherResource("v1", "nodes", "Node"), ...others];
  return new Map([
    [otherResource("v1", "services", "Service", true), serviceKeep(ruleAnnotations(config))],
    [otherResource("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", true), ENDPOINT_SLICE],
    [otherResource("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR"), SERVICE_CIDR],
    ...networks.map((resource) => [resource, networkKeep(resource, config.multiCNI)] as const),
  ]);
}

const WHY = {
  forbidden: "it may not be listed",
  unreachable: "the API server does not give it",
} as const;

function nameOf({ plural, group, only }: OtherResource): string {
  const name = group === "" ? plural : `${plural}.${group}`;
  return only === undefined ? name : `${name} ${only.namespace}/${only.name}`;
}

function textOf(object: unknown, field: string): string {
  return stringOf(valueAt(object, "metadata", field)) ?? "";
}
