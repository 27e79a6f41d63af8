/** The cluster's objects for an archive, as far as it keeps them. */

import { errorText, fieldsOf, stringOf, systemClock, valueAt } from "@fairlead/base";
import { NetworksOnce, ruleAnnotations } from "@fairlead/intake";
import {
  createApiSource,
  createManifestsSnapshot,
  type ObjectSource,
  type OtherResource,
  type OtherState,
} from "@fairlead/watch";
import { type Forbidden, forbiddenIn, mayNot } from "../cluster/api-error.ts";
import { otherResource } from "../cluster/resources.ts";
import type { Context } from "../frame/context.ts";
import type { AgentSetup } from "../inputs/agent.ts";
import { apiConnection, nodeNameOf } from "../inputs/cluster-access.ts";
import type { ClusterValues } from "../inputs/planned.ts";
import type { Missing } from "../sysdump/dump.ts";
import type { Keep } from "../sysdump/keep.ts";
import { ENDPOINT_SLICE, networkKeep, SERVICE_CIDR, serviceKeep } from "../sysdump/kept-objects.ts";
import { version } from "../version.ts";

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
  const collecting = new Collecting(wanted);
  const signals = [context.signal, down.signal, collecting.done, AbortSignal.timeout(PATIENCE_MS)];
  try {
    const source = await sourceOf(options, context, {
      onDown: (why) => down.abort(why),
      onForbidden: (forbidden) => collecting.forbid(forbidden),
    });
    await source.run({ others: collecting.subscriptions }, AbortSignal.any(signals));
  } catch (error) {
    down.abort(errorText(error));
  }
  return collecting.end(stringOf(down.signal.reason) ?? "no answer within a minute");
}

/** The resources whose objects the agent reads to learn networks; none where it learns none. */
export function networkResources({ networks }: Pick<AgentSetup, "networks">): readonly OtherResource[] {
  if (networks === undefined) return [];
  const once = new NetworksOnce({ settings: networks, clock: systemClock, onReady: () => {} });
  return once.subscriptions.map(({ resource }) => resource);
}

interface Wanted {
  readonly resource: OtherResource;
  readonly keep: Keep;
}

function wantedObjects({ config }: AgentSetup, resources: readonly OtherResource[]): readonly Wanted[] {
  const others = resources.filter(({ group, plural }) => group !== "" || plural !== "nodes");
  return [
    { resource: otherResource("v1", "services", "Service", true), keep: serviceKeep(ruleAnnotations(config)) },
    { resource: otherResource("discovery.k8s.io/v1", "endpointslices", "EndpointSlice", true), keep: ENDPOINT_SLICE },
    { resource: otherResource("networking.k8s.io/v1", "servicecidrs", "ServiceCIDR"), keep: SERVICE_CIDR },
    ...[otherResource("v1", "nodes", "Node"), ...others].map((resource) => {
      return { resource, keep: networkKeep(resource, config.multiCNI) };
    }),
  ];
}

interface SourceEvents {
  /** @param why nothing more will come */
  onDown(why: string): void;
  /** One resource may not be read. */
  onForbidden(forbidden: Forbidden): void;
}

async function sourceOf(
  options: ClusterValues,
  context: Context,
  { onDown, onForbidden }: SourceEvents,
): Promise<ObjectSource> {
  const { file: paths } = options;
  const nodeName = nodeNameOf(options);
  const { readStandardInput } = context;
  if (paths.length > 0) return createManifestsSnapshot({ paths, nodeName, readStandardInput });
  const connection = await apiConnection(options, context);
  return createApiSource({
    connection,
    nodeName,
    userAgent: `fairlead/${version}`,
    onReport: (report) => {
      if (report.type === "failing") onDown(report.error);
      const forbidden = report.type === "retry" ? forbiddenIn(report.error) : undefined;
      if (forbidden !== undefined) onForbidden(forbidden);
    },
  });
}

class Collecting {
  readonly #done = new AbortController();
  readonly #states = new Map<Wanted, OtherState | "synced">();
  readonly #objects = new Map<string, object>();
  readonly #wanted: readonly Wanted[];
  readonly #forbidden = new Map<string, string>();

  constructor(wanted: readonly Wanted[]) {
    this.#wanted = wanted;
  }

  get done(): AbortSignal {
    return this.#done.signal;
  }

  get subscriptions() {
    return this.#wanted.map((wanted) => ({
      resource: wanted.resource,
      decode: (raw: unknown) => this.#take(wanted, raw),
      onChange: ({ type }: { readonly type: string }) => {
        if (type === "synced") this.#known(wanted, "synced");
      },
      onState: (state: OtherState) => {
        // Its objects come before it is synced.
        if (state !== "listed") this.#known(wanted, state);
      },
    }));
  }

  forbid(forbidden: Forbidden): void {
    this.#forbidden.set(forbidden.resource, mayNot(forbidden));
  }

  end(why: string): DumpedObjects {
    const missing = this.#wanted.flatMap((wanted) => {
      const state = this.#states.get(wanted);
      if (state === "synced" || state === "absent") return [];
      const known = this.#forbidden.get(wanted.resource.plural);
      return [{ what: nameOf(wanted.resource), why: known ?? (state === undefined ? why : WHY[state]) }];
    });
    const objects = Array.from(this.#objects.entries()).sort(([a], [b]) => (a < b ? -1 : 1));
    const nodes = objects.filter(([key]) => key.startsWith("v1 nodes ")).map(([, one]) => textOf(one, "name"));
    return { objects: objects.map(([, one]) => one), nodes, missing };
  }

  #take({ resource, keep }: Wanted, raw: unknown): unknown {
    const { group, version: of, kind, plural } = resource;
    const apiVersion = group === "" ? of : `${group}/${of}`;
    // Items of a list say no kind.
    const object = { ...fieldsOf(keep(raw)), apiVersion, kind };
    this.#objects.set(`${apiVersion} ${plural} ${textOf(object, "namespace")}/${textOf(object, "name")}`, object);
    return true;
  }

  #known(wanted: Wanted, state: OtherState | "synced"): void {
    if (this.#states.get(wanted) !== "synced") this.#states.set(wanted, state);
    if (this.#states.size === this.#wanted.length) this.#done.abort();
  }
}

const WHY = {
  forbidden: "it may not be listed",
  unreachable: "the API server does not give it",
  listed: "its list did not end",
} as const;

function nameOf({ plural, group, only }: OtherResource): string {
  const name = group === "" ? plural : `${plural}.${group}`;
  return only === undefined ? name : `${name} ${only.namespace}/${only.name}`;
}

function textOf(object: object, field: string): string {
  return stringOf(valueAt(object, "metadata", field)) ?? "";
}
