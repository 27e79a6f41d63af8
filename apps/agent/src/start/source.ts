import type { AgentConfig } from "@fairlead/config";
import type { AgentParts } from "../agent/parts.ts";
import { describeError } from "../log/log.ts";
import { version } from "../version.ts";
import { StartError } from "./start-error.ts";

/**
 * Where the objects come from: manifest files, or the API server.
 *
 * @throws StartError when no API server is known
 */
export async function openSource(config: AgentConfig, nodeName: string): Promise<AgentParts["source"]> {
  const { createApiSource, createManifestsSource, loadConnection } = await import("@fairlead/watch");
  const { manifests: path, client } = config;
  if (path !== undefined) return (onReport) => createManifestsSource({ path, nodeName, onReport });
  try {
    const connection = await loadConnection(client);
    const { qps, burst } = client;
    const userAgent = `fairlead-proxy/${version}`;
    return (onReport) => createApiSource({ connection, nodeName, userAgent, qps, burst, onReport });
  } catch (error) {
    throw new StartError(describeError(error), { cause: error });
  }
}
