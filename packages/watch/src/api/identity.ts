import type { ObjectKey } from "../change.ts";

/** What the beginning of an object's JSON says of it. */
export interface Identity {
  readonly key: ObjectKey | undefined;
  readonly version: string | undefined;
}

const VALUE = '"([^"\\\\]*)"';
const metadata = new RegExp(
  `"metadata":\\s*\\{\\s*"name":\\s*${VALUE}(?:,\\s*"generateName":\\s*${VALUE})?(?:,\\s*"namespace":\\s*${VALUE})?`,
);
const resourceVersion = new RegExp(`"resourceVersion":\\s*${VALUE}`);

/**
 * Key and version of an object that is too much to be read, from its first bytes: API servers write the fields of
 * metadata in the order of their Go type. Undefined where they stand otherwise.
 */
export function identityIn(beginning: string): Identity {
  const found = metadata.exec(beginning);
  const [, name, , namespace = ""] = found ?? [];
  const version = found === null ? undefined : resourceVersion.exec(beginning.slice(found.index))?.[1];
  return { key: name === undefined || name === "" ? undefined : `${namespace}/${name}`, version };
}
