import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { type Manifest, parseManifests } from "./manifests.ts";

/** As much of a kustomization as those of deploy/ have. */
interface Kustomization {
  readonly resources: readonly string[];
  readonly patches?: readonly { readonly path: string }[];
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
  const files = [...resources.filter((name) => name.endsWith(".yaml")), ...patches.map(({ path }) => path)];
  const texts = await Promise.all(files.map((name) => readFile(join(dir, name), "utf8")));
  return texts.flatMap(parseManifests);
}

/** What stands in the ConfigMap of a folder, with what it has of the one that it merges into. */
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
