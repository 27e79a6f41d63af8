import type { AgentConfig } from "@fairlead/config";
import { describeError } from "../log/log.ts";
import type { AgentParts } from "../run/parts.ts";
import { StartError } from "./start-error.ts";
import { version } from "./version.ts";

export interface OpenedSource {
  readonly source: AgentParts["source"];
  /** Creates an Event in a namespace and gives the server's status; absent without an API server. */
  readonly postEvent?: (namespace: string, event: unknown) => Promise<number>;
}

/**
 * Where the objects come from: manifest files, or the API server.
 *
 * @throws StartError when no API server is known, or nothing could ever be read at the path
 */
export async function openSource(config: AgentConfig, nodeName: string): Promise<OpenedSource> {
  const watch = await import("@fairlead/watch");
  const { createApiSource, createManifestsSource, loadConnection, postObject } = watch;
  const { manifests: path, client } = config;
  if (path !== undefined) {
    const reason = await watch.whyNoManifests(path);
    if (reason !== undefined) throw new StartError(`--manifests=${path}: ${reason}`);
    return { source: (onReport) => createManifestsSource({ path, nodeName, onReport }) };
  }
  try {
    const connection = await loadConnection(client);
    const { qps, burst } = client;
    const { watchList } = config.features;
    const userAgent = `fairlead-proxy/${version}`;
    return {
      source: (onReport) => createApiSource({ connection, nodeName, userAgent, qps, burst, watchList, onReport }),
      postEvent: (namespace, event) =>
        postObject(connection, `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`, event, userAgent),
    };
  } catch (error) {
    throw new StartError(describeError(error), { cause: error });
  }
}
