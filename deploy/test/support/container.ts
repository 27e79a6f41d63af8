import { parseArgs } from "node:util";
import { type ParseResult, parseArguments } from "@fairlead/config";
import { verifyOptions } from "../../../apps/cli/src/commands/verify/options.ts";
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

/** What `fairlead verify` makes of a container's arguments. @throws TypeError for an option that it does not have */
export function toolOptions({ command, args }: Manifest["spec"]) {
  const all: readonly string[] = args.map((text: string) => text.replaceAll("$(NODE_NAME)", "node-a"));
  const specs = Object.entries(verifyOptions).map(([name, { placeholder }]) => {
    return [name, { type: placeholder === undefined ? "boolean" : "string", multiple: true }] as const;
  });
  const { values } = parseArgs({ args: [...all], options: Object.fromEntries(specs) });
  const options = Object.entries(verifyOptions).map(([name, { read }]) => [name, read(textsOf(values[name]))]);
  return { command, options: Object.fromEntries(options) };
}

function textsOf(given: unknown): readonly string[] {
  return Array.isArray(given) ? given.map(String) : [];
}
