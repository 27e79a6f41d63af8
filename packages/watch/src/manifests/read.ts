import { createHash } from "node:crypto";
import { isObject, type RawObject, slices, textAt, valueAt } from "@fairlead/base";
import type { ObjectKey, ResourceName } from "../change.ts";
import { objectKeyOf } from "../raw.ts";
import type { OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import { setDefaults } from "./defaults.ts";
import { hasNoKind } from "./definitions.ts";
import { isKindOf } from "./kind-of.ts";
import { parseManifest } from "./parse.ts";

/** An object of a manifest file as the API server would give it. */
export interface ManifestObject {
  readonly resource: ResourceName;
  readonly key: ObjectKey;
  readonly raw: RawObject;
}

/** Hash of the content: what a resourceVersion is for. */
export function versionOf({ raw }: ManifestObject): string {
  return createHash("sha1").update(JSON.stringify(raw)).digest("base64");
}

/**
 * The objects of a file that the server's selections would let through, with its defaults.
 *
 * @throws ManifestSyntaxError nothing of the file can be used then, what has been given included
 */
export async function* readManifest(
  file: string,
  content: Uint8Array,
  specs: readonly ResourceSpec[],
  onReport: OnReport,
): AsyncGenerator<ManifestObject> {
  const yielding = slices();
  const skipped = new Map<string, number>();
  for await (const raw of parseManifest(file, content)) {
    // Of Nodes the own one is wanted, and perhaps all.
    const wanted = specs.filter((spec) => isOf(raw, spec));
    if (wanted.length === 0 || !isObject(raw)) {
      const meant = meantBy(raw, specs);
      if (meant === undefined) count(skipped, kindText(raw));
      else onReport({ type: "badObject", resource: meant.name, file, error: versionText(raw, meant) });
    } else for (const spec of wanted) yield* objectOf(file, raw, spec, onReport);
    await yielding();
  }
  for (const [kind, times] of skipped) onReport({ type: "skippedKind", file, kind, count: times });
}

function isOf(raw: unknown, spec: ResourceSpec): boolean {
  const { apiVersion, kind } = spec;
  if (apiVersion !== textAt(raw, "apiVersion")) return false;
  const found = textAt(raw, "kind");
  return found === kind || (found !== undefined && hasNoKind(spec) && isKindOf(found, kind));
}

function objectOf(file: string, raw: RawObject, spec: ResourceSpec, onReport: OnReport): ManifestObject[] {
  setDefaults(spec.kind, raw);
  const key = objectKeyOf(raw);
  if (key === undefined) {
    onReport({ type: "badObject", resource: spec.name, file, error: `a ${spec.kind} without metadata.name` });
    return [];
  }
  if (!spec.selects(raw)) return [];
  const ownKey: ObjectKey = spec.namespaced ? key : `/${key.slice(key.indexOf("/") + 1)}`;
  return [{ resource: spec.name, key: ownKey, raw }];
}

/**
 * The resource that an object means without its apiVersion, or with one of another version; others have kinds of the
 * same name.
 */
function meantBy(raw: unknown, specs: readonly ResourceSpec[]): ResourceSpec | undefined {
  const version = textAt(raw, "apiVersion");
  return specs.find(
    ({ kind, apiVersion }) =>
      kind === textAt(raw, "kind") && (version === undefined || groupOf(version) === groupOf(apiVersion)),
  );
}

function groupOf(apiVersion: string): string {
  return apiVersion.includes("/") ? apiVersion.slice(0, apiVersion.indexOf("/")) : "";
}

function versionText(raw: unknown, { kind, apiVersion }: ResourceSpec): string {
  const version = textAt(raw, "apiVersion");
  const wrong = version === undefined ? "apiVersion is missing:" : `apiVersion ${JSON.stringify(version)}`;
  const name = textAt(valueAt(raw, "metadata"), "name");
  return `${[kind, ...(name === undefined ? [] : [name])].join(" ")}: ${wrong} must be ${apiVersion}`;
}

function count(counts: Map<string, number>, kind: string): void {
  counts.set(kind, (counts.get(kind) ?? 0) + 1);
}

function kindText(raw: unknown): string {
  const kind = textAt(raw, "kind");
  return kind === undefined ? "an object without kind" : `${textAt(raw, "apiVersion") ?? "(no apiVersion)"} ${kind}`;
}
