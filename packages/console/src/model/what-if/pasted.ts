import type { AgentConfig } from "@fairlead/config";
import type { ClusterState } from "@fairlead/core";
import { ruleAnnotations, selectionOf, subscriptions } from "@fairlead/intake";
import { createManifestsSnapshot, type ObjectKey, type OtherSubscription } from "@fairlead/watch";
import { RequestError } from "../../server/request-error.ts";

/** Objects as a source would give them, raw. */
export type PastedObjects = ReadonlyMap<ObjectKey, unknown>;

export interface PastedOptions {
  readonly manifests: string;
  readonly nodeName: string;
  /** Which Services are wanted, and which of their annotations. */
  readonly config: AgentConfig;
  /** Services and EndpointSlices go there. */
  readonly state: ClusterState;
  /** What else is asked for. */
  readonly others: readonly OtherSubscription[];
}

/**
 * Reads the objects of manifests.
 *
 * @returns those of each other resource
 * @throws RequestError when they cannot be read, or one of them is wrong, or none is wanted
 */
export async function readPasted(options: PastedOptions): Promise<ReadonlyMap<OtherSubscription, PastedObjects>> {
  const { manifests, nodeName, config, state, others } = options;
  const problems: string[] = [];
  let found = 0;
  const { services, endpointSlices } = subscriptions({
    state,
    annotations: ruleAnnotations(config),
    serviceProxyName: config.serviceProxyName,
    problems: {
      object: (kind, namespace, name, all) => {
        found += 1;
        for (const { field, reason } of all) problems.push(`${kind} ${namespace}/${name}: ${field} ${reason}`);
      },
    },
    onChange: () => {},
    onNode: () => {},
    onSynced: () => {},
  });
  const kept = new Map(others.map((other) => [other, new Map<ObjectKey, unknown>()] as const));
  const recorders = Array.from(kept, ([other, objects]) => recorder(other, objects));
  const source = createManifestsSnapshot({
    paths: ["-"],
    nodeName,
    ...selectionOf(config),
    readStandardInput: async () => Buffer.from(manifests),
    onReport: (report) => {
      if (report.type === "badObject") problems.push(String(report.error));
    },
  });
  try {
    await source.run({ services, endpointSlices, others: recorders }, new AbortController().signal);
  } catch (error) {
    throw new RequestError(400, error instanceof Error ? error.message.replace(/^standard input/, "manifests") : "");
  }
  if (problems.length > 0) throw new RequestError(400, problems.join("; "));
  for (const objects of kept.values()) found += objects.size;
  if (found === 0) throw new RequestError(400, NOTHING);
  return kept;
}

const NOTHING =
  "manifests: neither a Service nor an EndpointSlice is in them, nor an object that this configuration learns networks from";

function recorder({ resource }: OtherSubscription, into: Map<ObjectKey, unknown>): OtherSubscription {
  return {
    resource,
    decode: (raw) => raw,
    onChange: (change) => {
      if (change.type === "upsert") into.set(change.key, change.object);
    },
    onState: () => {},
  };
}
