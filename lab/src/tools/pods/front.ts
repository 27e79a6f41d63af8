import { fileURLToPath } from "node:url";
import type { NetworkNamespace } from "@fairlead/kernel/netns";
import { FROM_SOURCES, type Script, startScript } from "../../support/script.ts";

const MAIN = fileURLToPath(new URL("front-main.ts", import.meta.url));

interface FrontSettings {
  /** The real API server. */
  readonly server: string;
  readonly token: string;
  /** `NetworkNamespace.file` of each node, by the nodes' names, which have a pod each. */
  readonly nodes: ReadonlyMap<string, string>;
}

/**
 * Starts an API server for tools that look into the agents' pods, alongside the real one, which has no kubelets.
 *
 * @returns `ready` is its URL, without TLS
 */
export function startPodFront(
  { argvPrefix, env }: Pick<NetworkNamespace, "argvPrefix" | "env">,
  { server, token, nodes }: FrontSettings,
): Promise<Script> {
  const namespace = { argvPrefix, env: { ...env, FAIRLEAD_FRONT_TOKEN: token } };
  return startScript(namespace, MAIN, [server, JSON.stringify(Object.fromEntries(nodes))], FROM_SOURCES);
}
