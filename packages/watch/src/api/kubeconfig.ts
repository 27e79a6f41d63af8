import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { errorText, isObject, objectAt, objectsAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import { CORE_SCHEMA, load, mergeTag, YAMLException } from "js-yaml";
import { ConnectionError } from "./connection-error.ts";

/**
 * The current context's cluster and user of a kubeconfig (client-go's clientcmd/api/v1), fields as written there. Why
 * the agent does not use the client library's: README, "Why not the client library".
 */
export interface Kubeconfig {
  /** Path of the file, which relative paths in it are relative to. */
  readonly file: string;
  /** The context's name; "": the only one has none. */
  readonly context: string;
  /** The cluster's fields. */
  readonly cluster: RawObject;
  /** Empty where the context names no user. */
  readonly user: RawObject;
  /** The context's; absent: it names none. */
  readonly namespace?: string;
}

/**
 * A kubeconfig, as it is written.
 *
 * @throws ConnectionError when it cannot be read or is not one
 */
export async function readKubeconfigFile(file: string): Promise<RawObject> {
  return parse(file, await read(file));
}

/**
 * One context of a kubeconfig.
 *
 * @param asked the context's name; "" or absent: the current one
 * @throws ConnectionError naming the field and what would be right
 */
export function chosenContext(file: string, raw: RawObject, asked = ""): Kubeconfig {
  const contextName = asked === "" ? textAt(raw, "current-context") : asked;
  const context =
    contextName === undefined ? onlyContext(file, raw) : named(file, raw, "contexts", "context", contextName);
  const cluster = textAt(context, "cluster");
  if (cluster === undefined)
    throw new ConnectionError(
      `${file}: the ${asked === "" ? "current context" : `context "${asked}"`} names no cluster`,
    );
  const user = textAt(context, "user");
  const namespace = textAt(context, "namespace");
  return {
    file,
    context: contextName ?? textAt(objectsAt(raw, "contexts")[0], "name") ?? "",
    ...(namespace !== undefined && { namespace }),
    cluster: named(file, raw, "clusters", "cluster", cluster),
    user: user === undefined ? {} : named(file, raw, "users", "user", user),
  };
}

/** A path in a kubeconfig is relative to the kubeconfig's folder. */
export function pathIn(kubeconfig: Kubeconfig, path: string): string {
  return resolve(dirname(kubeconfig.file), path);
}

async function read(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new ConnectionError(`--kubeconfig ${file}: ${errorText(error)}`);
  }
}

function parse(file: string, text: string): RawObject {
  const raw = parseYaml(file, text);
  if (!isObject(raw)) throw new ConnectionError(`${file} is not a kubeconfig (apiVersion: v1, kind: Config)`);
  return raw;
}

function parseYaml(file: string, text: string): unknown {
  try {
    return load(text, { schema: CORE_SCHEMA.withTags(mergeTag), maxAliases: 100 });
  } catch (error) {
    throw new ConnectionError(
      `${file} is not YAML: ${error instanceof YAMLException ? error.toString(true) : errorText(error)}`,
    );
  }
}

function onlyContext(file: string, raw: RawObject): RawObject {
  const contexts = objectsAt(raw, "contexts");
  const [context] = contexts;
  if (context === undefined || contexts.length > 1) {
    throw new ConnectionError(`${file}: current-context is empty; it must name one of the contexts`);
  }
  return objectAt(context, "context");
}

function named(file: string, raw: RawObject, list: string, item: string, name: string): RawObject {
  const entries = objectsAt(raw, list);
  const found = entries.find((entry) => valueAt(entry, "name") === name);
  if (found === undefined) {
    const names = entries.flatMap((entry) => textAt(entry, "name") ?? []).join(", ");
    throw new ConnectionError(`${file}: ${list} has no ${item} "${name}"${names === "" ? "" : `; it has: ${names}`}`);
  }
  return objectAt(found, item);
}
