import { objectAt, textAt } from "@fairlead/base";
import type { ResourceSpec } from "../resources.ts";
import { parseManifest } from "./parse.ts";

const KIND = "CustomResourceDefinition";
const GROUP = "apiextensions.k8s.io/";

/** What a CustomResourceDefinition says of its resource's objects. */
export interface Definition {
  readonly group: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
}

/** Whether an operator wrote only the plural of the resource, which stands in place of the kind. */
export function hasNoKind({ other, kind }: ResourceSpec): boolean {
  return other !== undefined && kind === other.resource.plural;
}

/**
 * The definitions of a file; a file without the word is not parsed for them.
 *
 * @throws ManifestSyntaxError
 */
export async function definitionsIn(file: string, content: Uint8Array): Promise<readonly Definition[]> {
  const found: Definition[] = [];
  if (!Buffer.from(content.buffer, content.byteOffset, content.byteLength).includes(KIND)) return found;
  for await (const raw of parseManifest(file, content)) {
    if (textAt(raw, "kind") !== KIND || textAt(raw, "apiVersion")?.startsWith(GROUP) !== true) continue;
    const spec = objectAt(raw, "spec");
    const names = objectAt(spec, "names");
    const [group, plural, kind] = [textAt(spec, "group"), textAt(names, "plural"), textAt(names, "kind")];
    if (group === undefined || plural === undefined || kind === undefined) continue;
    found.push({ group, plural, kind, namespaced: textAt(spec, "scope") === "Namespaced" });
  }
  return found;
}

/** The same resources, with the kind and scope that their definition gives them; the last definition counts. */
export function definedBy(definitions: readonly Definition[], specs: readonly ResourceSpec[]): readonly ResourceSpec[] {
  return specs.map((spec) => {
    const { other } = spec;
    if (other === undefined || !hasNoKind(spec)) return spec;
    const { group, plural } = other.resource;
    const known = definitions.findLast((one) => one.group === group && one.plural === plural);
    return known === undefined ? spec : { ...spec, kind: known.kind, namespaced: known.namespaced };
  });
}
