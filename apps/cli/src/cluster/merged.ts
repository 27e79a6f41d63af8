import { dirname, resolve } from "node:path";
import { objectAt, objectsAt, type RawObject, textAt } from "@fairlead/base";

/** A kubeconfig file, as it is written. */
export interface WrittenKubeconfig {
  readonly file: string;
  readonly raw: RawObject;
}

/**
 * Several kubeconfigs as one, as kubectl reads `$KUBECONFIG`: of two entries with a name the first one counts, and the
 * first `current-context`. A path in a file is relative to that file's folder.
 */
export function mergedKubeconfig(files: readonly WrittenKubeconfig[]): RawObject {
  const current = files.map(({ raw }) => textAt(raw, "current-context")).find((name) => name !== undefined);
  return {
    clusters: entries(files, "clusters", (entry, folder) => {
      return { ...entry, cluster: withPaths(objectAt(entry, "cluster"), folder, ["certificate-authority"]) };
    }),
    users: entries(files, "users", (entry, folder) => ({ ...entry, user: userIn(objectAt(entry, "user"), folder) })),
    contexts: entries(files, "contexts", (entry) => entry),
    ...(current !== undefined && { "current-context": current }),
  };
}

function entries(
  files: readonly WrittenKubeconfig[],
  list: string,
  absolute: (entry: RawObject, folder: string) => RawObject,
): readonly RawObject[] {
  const byName = new Map<string | undefined, RawObject>();
  for (const { file, raw } of files) {
    for (const entry of objectsAt(raw, list)) {
      const name = textAt(entry, "name");
      if (!byName.has(name)) byName.set(name, absolute(entry, dirname(file)));
    }
  }
  return [...byName.values()];
}

function userIn(user: RawObject, folder: string): RawObject {
  const exec = objectAt(user, "exec");
  // A name without a slash is looked for in PATH.
  const isPath = textAt(exec, "command")?.includes("/") === true;
  return {
    ...withPaths(user, folder, ["client-certificate", "client-key", "tokenFile"]),
    ...(isPath && { exec: withPaths(exec, folder, ["command"]) }),
  };
}

function withPaths(of: RawObject, folder: string, fields: readonly string[]): RawObject {
  const paths = fields.flatMap((field) => {
    const path = textAt(of, field);
    return path === undefined ? [] : [[field, resolve(folder, path)]];
  });
  return { ...of, ...Object.fromEntries(paths) };
}
