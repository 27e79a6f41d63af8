import type { Clock } from "../clock.ts";
import { isObject, objectAt, objectsAt, type RawObject, textAt, valueAt } from "../raw.ts";
import { ConnectionError } from "./connection-error.ts";

/** A credential plugin as kubeconfig's users[].user.exec names it (client.authentication.k8s.io). */
export interface ExecPlugin {
  readonly command: string;
  readonly args: readonly string[];
  /** Added to the process' own environment; has KUBERNETES_EXEC_INFO. */
  readonly env: Readonly<Record<string, string>>;
}

/** Runs a plugin and gives what it wrote to stdout. This package starts no processes itself. */
export type RunExecPlugin = (plugin: ExecPlugin) => Promise<string>;

export interface ExecCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** Gives the plugin's credential, asking it again once the last one has expired. */
export function execCredentials(
  exec: RawObject,
  run: RunExecPlugin,
  wallClock: Clock["now"],
): () => Promise<ExecCredential> {
  const plugin = pluginOf(exec);
  let last: ExecCredential = {};
  let expires = Number.NEGATIVE_INFINITY;
  return async () => {
    if (wallClock() < expires) return last;
    const status = statusOf(plugin, await run(plugin));
    const expiration = Date.parse(textAt(status, "expirationTimestamp") ?? "");
    expires = Number.isNaN(expiration) ? Number.POSITIVE_INFINITY : expiration;
    last = credentialOf(status);
    return last;
  };
}

function pluginOf(exec: RawObject): ExecPlugin {
  const command = textAt(exec, "command");
  const apiVersion = textAt(exec, "apiVersion");
  if (command === undefined || apiVersion === undefined) {
    throw new ConnectionError("kubeconfig's users[].user.exec needs a command and an apiVersion");
  }
  const args = valueAt(exec, "args");
  const given = objectsAt(exec, "env").map((entry): [string, string] => [
    String(valueAt(entry, "name")),
    String(valueAt(entry, "value")),
  ]);
  const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec: { interactive: false } });
  return {
    command,
    args: Array.isArray(args) ? args.map(String) : [],
    env: { ...Object.fromEntries(given), KUBERNETES_EXEC_INFO: info },
  };
}

function statusOf(plugin: ExecPlugin, output: string): RawObject {
  const parsed = parseJson(output);
  if (!isObject(parsed)) throw new ConnectionError(`${plugin.command} wrote no ExecCredential object`);
  return objectAt(parsed, "status");
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function credentialOf(status: RawObject): ExecCredential {
  const token = textAt(status, "token");
  const cert = textAt(status, "clientCertificateData");
  const key = textAt(status, "clientKeyData");
  return {
    ...(token === undefined ? {} : { token }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
  };
}
