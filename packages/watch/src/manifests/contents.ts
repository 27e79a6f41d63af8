import type { OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import type { ObjectId } from "./ownership.ts";
import { type ManifestObject, readManifest } from "./read.ts";

/** What a file holds, all of which can be read. */
export interface Contents {
  readonly ids: ReadonlySet<ObjectId>;
  /** Of objects that stand in the file more than once the last one. */
  readonly objects: AsyncIterable<ManifestObject> | Iterable<ManifestObject>;
}

/** The objects of longer files are not kept between the first reading, which says that all are good, and the second. */
const KEPT_UP_TO = 2 ** 20;

export function idOf({ resource, key }: Pick<ManifestObject, "resource" | "key">): ObjectId {
  return `${resource} ${key}`;
}

/** @throws ManifestSyntaxError nothing of it can be used */
export async function contentsOf(
  file: string,
  content: Uint8Array,
  specs: readonly ResourceSpec[],
  onReport: OnReport,
): Promise<Contents> {
  const kept: ManifestObject[] | undefined = content.length <= KEPT_UP_TO ? [] : undefined;
  const last = new Map<ObjectId, number>();
  let index = 0;
  for await (const object of readManifest(file, content, specs, onReport)) {
    const { resource, key } = object;
    const id = idOf(object);
    if (last.has(id)) onReport({ type: "duplicate", resource, key, used: file, ignored: file });
    last.set(id, index++);
    kept?.push(object);
  }
  const objects = kept ?? readManifest(file, content, specs, () => {});
  return { ids: new Set(last.keys()), objects: last.size === index ? objects : lastOfEach(objects, last) };
}

async function* lastOfEach(
  objects: Contents["objects"],
  last: ReadonlyMap<ObjectId, number>,
): AsyncGenerator<ManifestObject> {
  let index = 0;
  for await (const object of objects) if (last.get(idOf(object)) === index++) yield object;
}
