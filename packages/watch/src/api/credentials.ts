import { readFile } from "node:fs/promises";
import { errorText, isObject, objectAt, type RawObject, textAt, valueAt } from "../raw.ts";
import type { Credentials } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { type ExecCredential, execCredentials, type RunExecPlugin } from "./exec-plugin.ts";
import { type Kubeconfig, pathIn } from "./kubeconfig.ts";
import type { TlsOptions } from "./tls.ts";

/**
 * The credentials of a kubeconfig, its files read anew at each call.
 *
 * @throws ConnectionError where the kubeconfig asks for what isn't allowed or doesn't exist here
 */
export function kubeconfigCredentials(
  kubeconfig: Kubeconfig,
  runExecPlugin?: RunExecPlugin,
): () => Promise<Credentials> {
  const { user, file } = kubeconfig;
  if (isObject(valueAt(user, "auth-provider"))) {
    throw new ConnectionError(
      `${file}: auth-provider is not supported (client-go removed it in 1.26); use tokenFile, token or a client certificate`,
    );
  }
  const exec = execOf(kubeconfig, runExecPlugin);
  return async () => {
    const plugin = await exec();
    const bearer = await bearerToken(kubeconfig, plugin);
    return {
      headers: { ...authorization(user, bearer), ...impersonation(user) },
      tls: await tlsOf(kubeconfig, plugin),
    };
  };
}

function execOf({ user, file }: Kubeconfig, run: RunExecPlugin | undefined): () => Promise<ExecCredential> {
  if (!isObject(valueAt(user, "exec"))) return async () => ({});
  if (run === undefined) {
    throw new ConnectionError(
      `${file}: credential plugins (users[].user.exec) are not run; use tokenFile, token or a client certificate`,
    );
  }
  return execCredentials(objectAt(user, "exec"), run, Date.now);
}

/** As client-go: the file's token wins over the one written in the kubeconfig. */
async function bearerToken(kubeconfig: Kubeconfig, plugin: ExecCredential): Promise<string | undefined> {
  const tokenFile = textAt(kubeconfig.user, "tokenFile");
  if (tokenFile !== undefined) return readToken(pathIn(kubeconfig, tokenFile));
  return textAt(kubeconfig.user, "token") ?? plugin.token;
}

/** @throws ConnectionError when the file is not there or empty */
export async function readToken(path: string): Promise<string> {
  const token = (await readText("token file", path)).trim();
  if (token === "" || /\s/.test(token)) throw new ConnectionError(`token file ${path} does not hold one token`);
  return token;
}

/** @throws ConnectionError */
export async function readText(what: string, path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    throw new ConnectionError(`${what} ${path}: ${errorText(error)}`);
  }
}

function authorization(user: RawObject, bearer: string | undefined): Record<string, string> {
  if (bearer !== undefined) return { authorization: `Bearer ${bearer}` };
  const name = textAt(user, "username");
  if (name === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${name}:${textAt(user, "password") ?? ""}`).toString("base64")}` };
}

function impersonation(user: RawObject): Record<string, string> {
  const as = textAt(user, "as");
  return as === undefined ? {} : { "impersonate-user": as };
}

async function tlsOf(kubeconfig: Kubeconfig, plugin: ExecCredential): Promise<TlsOptions> {
  const { cluster, user } = kubeconfig;
  const ca = await pem(kubeconfig, cluster, "certificate-authority");
  const cert = (await pem(kubeconfig, user, "client-certificate")) ?? plugin.cert;
  const key = (await pem(kubeconfig, user, "client-key")) ?? plugin.key;
  const servername = textAt(cluster, "tls-server-name");
  return {
    ...(ca === undefined ? {} : { ca }),
    ...(cert === undefined ? {} : { cert }),
    ...(key === undefined ? {} : { key }),
    ...(servername === undefined ? {} : { servername }),
    ...(valueAt(cluster, "insecure-skip-tls-verify") === true ? { rejectUnauthorized: false } : {}),
  };
}

/** `field-data` (base64) wins over the file that `field` names, as in client-go. */
async function pem(kubeconfig: Kubeconfig, from: RawObject, field: string): Promise<string | undefined> {
  const data = textAt(from, `${field}-data`);
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  const path = textAt(from, field);
  return path === undefined ? undefined : readText(field, pathIn(kubeconfig, path));
}
