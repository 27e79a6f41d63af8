import { readFile } from "node:fs/promises";
import { type Clock, errorText, isObject, type RawObject, textAt, valueAt } from "@fairlead/base";
import type { Credentials } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { execCredentials } from "./exec-credentials.ts";
import { type Kubeconfig, pathIn } from "./kubeconfig.ts";
import { withoutPasswords } from "./redact.ts";
import type { TlsOptions } from "./tls.ts";

export interface CredentialOptions {
  /** `exec` is followed; else a kubeconfig that has it is refused. */
  readonly allowPlugins: boolean;
  /** Absent: a kubeconfig with `auth-provider` is refused. */
  readonly authProvider: AuthProvider | undefined;
  /** Whether they would go over TLS: only then there are any but the name of whom one speaks for, as with client-go. */
  readonly secure: boolean;
  readonly warn: (text: string) => void;
  readonly clock: Clock;
}

/**
 * Asks what `auth-provider` of a kubeconfig's user names, at each call.
 *
 * @param context its name in the file; "": the file has only one, without a name
 */
export type AuthProvider = (file: string, context: string) => Promise<Credentials>;

/**
 * The credentials of a kubeconfig, its files read anew at each call. Tokens, token files and certificates are read
 * here, `exec` is run.
 *
 * @throws ConnectionError where the kubeconfig asks for what isn't allowed
 */
export function kubeconfigCredentials(kubeconfig: Kubeconfig, options: CredentialOptions): () => Promise<Credentials> {
  const { user, file } = kubeconfig;
  const field = ["exec", "auth-provider"].find((name) => isObject(valueAt(user, name)));
  if (field === "auth-provider" && options.authProvider === undefined) {
    throw new ConnectionError(
      `${file}: users[].user.auth-provider is not supported: use exec with a credential plugin ` +
        "(client.authentication.k8s.io, with --allow-exec-credentials), tokenFile, token or a client certificate",
    );
  }
  if (field !== undefined && !options.allowPlugins) {
    throw new ConnectionError(
      `${file}: users[].user.${field} gets its credentials from programs, which --allow-exec-credentials allows; ` +
        "or use tokenFile, token or a client certificate",
    );
  }
  if (!options.secure) return async () => ({ headers: impersonation(user), tls: {} });
  const plugin =
    field === undefined ? async () => NOTHING : named(kubeconfig, field, pluginOf(kubeconfig, field, options));
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

function pluginOf(
  kubeconfig: Kubeconfig,
  field: string,
  { warn, clock, authProvider }: CredentialOptions,
): () => Promise<Credentials> {
  if (field === "exec" || authProvider === undefined) return execCredentials(kubeconfig, warn, clock);
  return () => authProvider(kubeconfig.file, kubeconfig.context);
}

/** The same, with errors that say where they come from. */
function named({ file }: Kubeconfig, field: string, read: () => Promise<Credentials>): () => Promise<Credentials> {
  return async () => {
    try {
      return await read();
    } catch (error) {
      throw new ConnectionError(`${file}: users[].user.${field}: ${withoutPasswords(errorText(error))}`);
    }
  };
}

/** As client-go: the file's token wins over the one written in the kubeconfig. */
async function bearerToken(kubeconfig: Kubeconfig): Promise<string | undefined> {
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
