import { parseAllDocuments } from "yaml";

/** As much of a Kubernetes object as the tests look at. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
  // biome-ignore lint/suspicious/noExplicitAny: objects of any kind; a path that is not there fails its test
  readonly [field: string]: any;
}

/** @throws Error when a document is no YAML or has a key twice */
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
