import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";

/** As much of a Kubernetes object as the tests look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind; a path that is not there fails the test that asks for it
  readonly [field: string]: any;
}

/** @throws Error when a document is no YAML or has a key twice */
export function parseManifests(text: string): Manifest[] {
  const documents = parseAllDocuments(text);
  if (!Array.isArray(documents)) return [];
  for (const { errors } of documents) if (errors[0] !== undefined) throw errors[0];
  return documents.map((document) => document.toJS()).filter((value) => value !== null);
}

/** All objects of a folder's files, without those of kustomize itself. */
export async function readManifests(dir: string): Promise<Manifest[]> {
  const files = (await readdir(dir)).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml").sort();
  const texts = await Promise.all(files.map((name) => readFile(join(dir, name), "utf8")));
  return texts.flatMap(parseManifests);
}

export function only(manifests: readonly Manifest[], kind: string): Manifest {
  const [found, ...more] = manifests.filter((manifest) => manifest.kind === kind);
  if (found === undefined || more.length > 0) throw new Error(`there is not exactly one ${kind}`);
  return found;
}
