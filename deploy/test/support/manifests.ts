import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ParseResult, parseArguments } from "@fairlead/config";
import { parse, parseAllDocuments } from "yaml";
import { verifyOptions } from "../../../apps/cli/src/facts/plans.ts";

/** As much of a Kubernetes object as the tests look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind; a path that is not there fails its test
  readonly [field: string]: any;
}

export function parseManifests(text: string): Manifest[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return [];
  for (const { errors } of documents) if (errors[0] !== undefined) throw errors[0];
  return documents.map((document) => document.toJS()).filter((value) => value !== null);
}

export function only(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, ...more] = manifests.filter((manifest) => manifest.kind === kind);
  if (found === undefined || more.length > 0) throw new Error(`there is not exactly one ${kind}`);
  return found;
}

/** As much of a kustomization as those of deploy/ have. */
interface Kustomization {
  readonly resources: readonly string[];
  /** Each in a file of its own, or written out. */
  readonly patches?: readonly { readonly path?: string; readonly patch?: string }[];
  readonly configMapGenerator?: readonly Generator[];
}

interface Generator {
  readonly name: string;
  readonly namespace: string;
  readonly behavior?: "merge";
  readonly files: readonly string[];
  readonly options: { readonly immutable: boolean };
}

export async function readKustomization(dir: string): Promise<Kustomization> {
  return parse(await readFile(join(dir, "kustomization.yaml"), "utf8"));
}

/** The objects of a folder's own files: what it adds to, or patches in, those that it refers to. */
export async function ownManifests(dir: string): Promise<Manifest[]> {
  const { resources, patches = [] } = await readKustomization(dir);
  const files = [...resources.filter((name) => name.endsWith(".yaml")), ...patches.flatMap(({ path }) => path ?? [])];
  const texts = await Promise.all(files.map((name) => readFile(join(dir, name), "utf8")));
  return texts.flatMap(parseManifests);
}

export async function configMapOf(dir: string): Promise<Manifest> {
  const { resources, configMapGenerator = [] } = await readKustomization(dir);
  const [generator, ...more] = configMapGenerator;
  const below = resources.filter((name) => name.startsWith(".."));
  const [base] = await Promise.all(below.map((name) => configMapOf(join(dir, name))));
  if (more.length > 0) throw new Error(`${dir} makes more than one ConfigMap`);
  if (generator === undefined) {
    if (base === undefined) throw new Error(`${dir} makes no ConfigMap`);
    return base;
  }
  const own = await Promise.all(
    generator.files.map(async (name) => [name, await readFile(join(dir, name), "utf8")] as const),
  );
  const { name, namespace, options } = generator;
  const data = { ...base?.["data"], ...Object.fromEntries(own) };
  return { kind: "ConfigMap", metadata: { name, namespace }, ...options, data };
}

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
