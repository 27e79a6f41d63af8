import { readFile } from "node:fs/promises";
import { type Clock, errorText, isObject, type RawObject, textAt, valueAt } from "@fairlead/base";
import type { Credentials } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { execCredentials } from "./exec-credentials.ts";
import { type Kubeconfig, pathIn } from "./kubeconfig.ts";
import type { TlsOptions } from "./tls.ts";

export interface CredentialOptions {
  /** `exec` is followed; else a kubeconfig that has it is refused. */
  readonly allowExec: boolean;
  /** Whether they would go over TLS: only then there are any but the name of whom one speaks for, as with client-go. */
  readonly secure: boolean;
  readonly warn: (text: string) => void;
  readonly clock: Clock;
}

/**
 * The credentials of a kubeconfig, its files read anew at each call. Tokens, token files and certificates are read
 * here, `exec` is run.
 *
 * @throws ConnectionError where the kubeconfig asks for what isn't allowed
 */
export function kubeconfigCredentials(kubeconfig: Kubeconfig, options: CredentialOptions): () => Promise<Credentials> {
  const { user, file } = kubeconfig;
  if (isObject(valueAt(user, "auth-provider"))) {
    throw new ConnectionError(
      `${file}: users[].user.auth-provider is not supported: use exec with a credential plugin ` +
        "(client.authentication.k8s.io, with --allow-exec-credentials), tokenFile, token or a client certificate",
    );
  }
  const asks = isObject(valueAt(user, "exec"));
  if (asks && !options.allowExec) {
    throw new ConnectionError(
      `${file}: users[].user.exec gets its credentials from programs, which --allow-exec-credentials allows; ` +
        "or use tokenFile, token or a client certificate",
    );
  }
  if (!options.secure) return async () => ({ headers: impersonation(user), tls: {} });
  const plugin = asks ? execCredentials(kubeconfig, options.warn, options.clock) : async () => NOTHING;
  return async () => {
    const { headers, tls } = await plugin();
    const bearer = await bearerToken(kubeconfig);
    return {
      headers: { ...headers, ...authorization(user, bearer), ...impersonation(user) },
      tls: { ...tls, ...(await tlsOf(kubeconfig)) },
    };
  };
}

const NOTHING: Credentials = { headers: {}, tls: {} };

/**
 * The user's token, as client-go: the file's wins over the one written in the kubeconfig.
 *
 * @throws ConnectionError when the file is not there or does not hold one token
 */
export async function bearerToken(kubeconfig: Kubeconfig): Promise<string | undefined> {
  const tokenFile = textAt(kubeconfig.user, "tokenFile");
  if (tokenFile !== undefined) return readToken(pathIn(kubeconfig, tokenFile));
  return textAt(kubeconfig.user, "token");
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

async function tlsOf(kubeconfig: Kubeconfig): Promise<TlsOptions> {
  const { cluster, user } = kubeconfig;
  const ca = await pem(kubeconfig, cluster, "certificate-authority");
  const cert = await pem(kubeconfig, user, "client-certificate");
  const key = await pem(kubeconfig, user, "client-key");
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
