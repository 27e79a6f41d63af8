import { type ParseResult, parseArguments } from "@fairlead/config";
import type { Manifest } from "./manifests.ts";

/** The command line of a container, as kubelet fills it in on node-a. */
export function argumentsOf(container: Manifest["spec"]): string[] {
  const [, ...ownArguments] = container.command ?? ["entrypoint"];
  const all: string[] = [...ownArguments, ...(container.args ?? [])];
  return all.map((argument) => argument.replaceAll("$(NODE_NAME)", "node-a"));
}

/** What the agent makes of a container's arguments, with the ConfigMap mounted where the container mounts it. */
export function agentConfig(container: Manifest["spec"], configMap: Manifest, volume: string): ParseResult {
  const { mountPath } = container.volumeMounts.find(({ name }: { name: string }) => name === volume);
  const readFile = (path: string) => {
    const text = configMap["data"][path.slice(mountPath.length + 1)];
    if (!path.startsWith(`${mountPath}/`) || text === undefined) throw new Error(`${path} is not mounted`);
    return String(text);
  };
  return parseArguments(argumentsOf(container), { readFile, version: "0.1.0" });
}
