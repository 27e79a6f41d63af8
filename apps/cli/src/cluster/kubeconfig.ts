/** A kubeconfig as kubectl reads it: files, credentials, impersonation, time limits. */

import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
import {
  fieldsOf,
  isObject,
  itemsOf,
  objectAt,
  objectsAt,
  type RawObject,
  stringOf,
  systemClock,
  textAt,
  valueAt,
} from "@fairlead/base";
import { parseDuration } from "@fairlead/config";
import {
  type ApiConnection,
  bearerToken,
  ConnectionError,
  type Credentials,
  checkedServer,
  chosenContext,
  execCredentials,
  type Kubeconfig,
  readKubeconfigFile,
} from "@fairlead/watch";
import type { KubeConfig } from "@kubernetes/client-node";
import type { Context } from "../frame/context.ts";
import { UsageError } from "../frame/errors.ts";
import { accessOf, type ClusterAccess, isInPod, kubeconfigFiles } from "./access.ts";

export interface OpenKubeconfig {
  readonly config: KubeConfig;
  /** Base URL without a trailing slash. */
  readonly server: string;
  /** For messages. */
  readonly file: string;
  /** The context's; absent: it names none. */
  readonly namespace?: string;
  /** Milliseconds that a request may take, as the user says; absent: the user does not. */
  readonly requestMs?: number;
}

/** Of one command line: credentials are requested once. */
const opened = new WeakMap<Context["env"], Map<string, Promise<OpenKubeconfig>>>();

/**
 * The cluster that is meant, with its credentials, as kubectl finds them: certificates, tokens, programs (`exec`),
 * OpenID Connect (`auth-provider`), a pod's service account.
 */
export function openKubeconfig(access: ClusterAccess, context: Pick<Context, "env" | "warn">): Promise<OpenKubeconfig> {
  const known = opened.get(context.env) ?? new Map<string, Promise<OpenKubeconfig>>();
  opened.set(context.env, known);
  const files = kubeconfigFiles(access, context.env);
  const key = JSON.stringify([files, accessOf(access)]);
  const opening = known.get(key) ?? open(files, access, context);
  known.set(key, opening);
  return opening;
}

async function open(
  files: readonly string[],
  access: ClusterAccess,
  { env, warn }: Pick<Context, "env" | "warn">,
): Promise<OpenKubeconfig> {
  const requestMs = requestTimeoutOf(access);
  const patience = requestMs === undefined ? {} : { requestMs };
  if (files.length === 0 && access.server === undefined) return { ...(await inPod(access, env)), ...patience };
  const chosen = withServer(files.length === 0 ? NO_FILE : await chosenFrom(files, access.context), access);
  const { server, secure } = checkedServer(chosen, undefined, warn);
  const config = await newConfig(access, chosen.user);
  const ask = secure ? askedCredentials(chosen, warn) : undefined;
  if (ask !== undefined) config.addAuthenticator(authenticator(ask));
  config.loadFromString(JSON.stringify(forLibrary(chosen, server, secure)));
  const { file, namespace } = chosen;
  return { config, server, file, ...(namespace !== undefined && { namespace }), ...patience };
}

/** `--server` without a kubeconfig: no credentials. */
const NO_FILE: Kubeconfig = { file: "--server", context: "", cluster: {}, user: {} };

/** As client-go: a name for TLS is that of the kubeconfig's own server. */
function withServer(chosen: Kubeconfig, { server }: ClusterAccess): Kubeconfig {
  if (server === undefined) return chosen;
  const url = URL.parse(server);
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new UsageError(`--server=${server}: must be a URL such as https://192.0.2.10:6443`);
  }
  return { ...chosen, cluster: { ...withoutFields(chosen.cluster, ["tls-server-name"]), server } };
}

/** The library knows one of the headers of impersonation, and writes the values of another into a single line. */
async function newConfig(access: ClusterAccess, user: RawObject): Promise<KubeConfig> {
  const headers = impersonation(access, user);
  const { KubeConfig } = await import("./library.ts");
  const config = new KubeConfig();
  const apply = config.applyToHTTPSOptions.bind(config);
  config.applyToHTTPSOptions = async (options) => {
    await apply(options);
    options.headers = { ...options.headers, ...headers };
  };
  return config;
}

/** The namespace of the context that is meant; undefined: it names none. The library is not loaded for it. */
export async function contextNamespace(
  access: ClusterAccess,
  { env }: Pick<Context, "env">,
): Promise<string | undefined> {
  const files = kubeconfigFiles(access, env);
  return files.length === 0 ? undefined : (await chosenFrom(files, access.context)).namespace;
}

async function chosenFrom(files: readonly string[], context: string | undefined): Promise<Kubeconfig> {
  const written = await Promise.all(files.map(async (file) => ({ file, raw: await readKubeconfigFile(file) })));
  const merged = mergedKubeconfig(written);
  try {
    return chosenContext(files.join(", "), merged, context);
  } catch (error) {
    const names = itemsOf(fieldsOf(merged)["contexts"]).map((one) => fieldsOf(one)["name"]);
    if (!(error instanceof ConnectionError) || context === undefined || names.includes(context)) throw error;
    throw new UsageError(`--context=${context}: ${error.message}`);
  }
}

async function inPod(access: ClusterAccess, env: Context["env"]): Promise<OpenKubeconfig> {
  if (!isInPod(env)) {
    throw new ConnectionError(
      "no kubeconfig: give --kubeconfig, set KUBECONFIG, or run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)",
    );
  }
  const config = await newConfig(access, {});
  config.loadFromCluster();
  return { config, server: config.getCurrentCluster()?.server ?? "", file: "the pod's service account" };
}

const NAME = "chosen";
/** Of a user: `exec` and `tokenFile` are asked for by `askedCredentials`, `as` is a header of `newConfig`. */
const NOT_FOR_LIBRARY = ["exec", "tokenFile", "as"];

/**
 * The context as the library takes it: it refuses servers without TLS, does not trust the cluster's CA
 * where there is no user, prefers a file to the data that is written alongside it, and a token to its file.
 */
function forLibrary({ cluster, user }: Kubeconfig, server: string, secure: boolean): object {
  const hasTokenFile = textAt(user, "tokenFile") !== undefined;
  const dropped = [...NOT_FOR_LIBRARY, ...(hasTokenFile ? ["token"] : [])];
  const own = secure ? withoutFields(preferringData(user), dropped) : {};
  const trusted = secure ? preferringData(cluster) : { "insecure-skip-tls-verify": true };
  return {
    clusters: [{ name: NAME, cluster: { ...trusted, "proxy-url": cluster["proxy-url"], server } }],
    users: [{ name: NAME, user: own }],
    contexts: [{ name: NAME, context: { cluster: NAME, user: NAME } }],
    "current-context": NAME,
  };
}

/** As client-go: `field-data` wins over the file that `field` names. */
function preferringData(raw: RawObject): RawObject {
  const files = ["certificate-authority", "client-certificate", "client-key"];
  return withoutFields(
    raw,
    files.filter((field) => textAt(raw, `${field}-data`) !== undefined),
  );
}

function withoutFields(raw: RawObject, fields: readonly string[]): RawObject {
  return Object.fromEntries(Object.entries(raw).filter(([name]) => !fields.includes(name)));
}

/**
 * Credentials that the same code reads as the agent's, at each use: the library's would give a program an open standard
 * input, no KUBERNETES_EXEC_INFO and all the time it wants, and does not know `tokenFile`.
 */
function askedCredentials(chosen: Kubeconfig, warn: (text: string) => void): (() => Promise<Credentials>) | undefined {
  const { user } = chosen;
  const program = isObject(valueAt(user, "exec")) ? execCredentials(chosen, warn, systemClock) : undefined;
  if (program === undefined && textAt(user, "tokenFile") === undefined) return undefined;
  return async () => {
    const { headers, tls } = (await program?.()) ?? { headers: {}, tls: {} };
    const token = await bearerToken(chosen);
    return { headers: { ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) }, tls };
  };
}

function authenticator(ask: () => Promise<Credentials>): Parameters<KubeConfig["addAuthenticator"]>[0] {
  return {
    isAuthProvider: () => true,
    async applyAuthentication(_user, options) {
      const { headers, tls } = await ask();
      const { authorization } = headers;
      if (authorization !== undefined) options.headers = { ...options.headers, Authorization: authorization };
      if (tls.cert !== undefined) options.cert = tls.cert;
      if (tls.key !== undefined) options.key = tls.key;
    },
  };
}

/** The same cluster for lists and watches of Services, EndpointSlices and Nodes, which are not the library's. */
export function connectionOf({ config, server, file }: OpenKubeconfig): ApiConnection {
  const proxyUrl = config.getCurrentCluster()?.proxyUrl;
  if (proxyUrl !== undefined && !/^https?:\/\//.test(proxyUrl)) {
    throw new ConnectionError(`${file}: proxy-url must be an http or https URL to read a cluster's services`);
  }
  return {
    server,
    ...(proxyUrl !== undefined && { proxyUrl }),
    credentials: async () => {
      const options: RequestOptions = {};
      await config.applyToHTTPSOptions(options);
      return { headers: headersOf(options), tls: tlsOf(options) };
    },
  };
}

function headersOf({ headers = {}, auth }: RequestOptions): Headers {
  const texts = Object.entries(headers).map(([name, value]) => {
    return [name.toLowerCase(), Array.isArray(value) ? value.map(String) : String(value)];
  });
  const basic = auth == null ? {} : { authorization: `Basic ${Buffer.from(auth).toString("base64")}` };
  return { ...basic, ...Object.fromEntries(texts) };
}

function tlsOf({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions) {
  return {
    ...(ca != null && { ca: String(ca) }),
    ...(cert != null && { cert: String(cert) }),
    ...(key != null && { key: String(key) }),
    ...(servername !== undefined && { servername }),
    ...(rejectUnauthorized !== undefined && { rejectUnauthorized }),
  };
}

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

/** Headers of a request; one with several values is a line for each. */
type Headers = Readonly<Record<string, string | string[]>>;

/**
 * The headers by which an API server takes requests for those of another user
 * (https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation).
 *
 * @param user of the kubeconfig: `as`, `as-groups`, `as-uid` and `as-user-extra`; options go before them
 */
function impersonation({ as, "as-group": asked = [] }: ClusterAccess, user: RawObject): Headers {
  const name = as ?? textAt(user, "as");
  const groups = asked.length > 0 ? [...asked] : textsOf(user["as-groups"]);
  const uid = textAt(user, "as-uid");
  const extra = Object.entries(fieldsOf(user["as-user-extra"])).map(([key, values]): [string, string[]] => {
    return [`impersonate-extra-${encodeURIComponent(key)}`, textsOf(values).map(header("as-user-extra"))];
  });
  if (name === undefined || name === "") {
    if (asked.length > 0) throw new UsageError("--as-group: name the user with --as, too");
    return {};
  }
  return {
    "impersonate-user": header(as === undefined ? "as" : "--as")(name),
    ...(groups.length > 0 && {
      "impersonate-group": groups.map(header(asked.length > 0 ? "--as-group" : "as-groups")),
    }),
    ...(uid !== undefined && { "impersonate-uid": header("as-uid")(uid) }),
    ...Object.fromEntries(extra.filter(([, values]) => values.length > 0)),
  };
}

/** A value as it is sent; what would end the header, or become another name on the way, is refused. */
function header(from: string): (value: string) => string {
  return (value) => {
    if (/^[ -~]+$/.test(value)) return value;
    throw new UsageError(`${from}=${value}: must be a name of ASCII characters, none of them a control character`);
  };
}

function textsOf(list: unknown): string[] {
  return itemsOf(list).flatMap((one) => stringOf(one) ?? []);
}

/**
 * What `--request-timeout` says, as kubectl reads it: `5s`, `1m30s`, or whole seconds.
 *
 * @returns milliseconds; `Infinity` for 0; undefined: it is not given
 */
export function requestTimeoutOf({ "request-timeout": text }: ClusterAccess): number | undefined {
  if (text === undefined) return undefined;
  const ms = /^\d+$/.test(text) ? Number(text) * 1_000 : parseDuration(text);
  if (ms !== undefined && ms >= 0 && ms <= LONGEST_MS) return ms === 0 ? Number.POSITIVE_INFINITY : ms;
  throw new UsageError(`--request-timeout=${text}: must be a time such as 5s, 1m or 30 (seconds); 0 means no limit`);
}

/** What timers take. */
const LONGEST_MS = 2 ** 31 - 1;

/** Aborts when a request took too long; undefined: none is too long. */
export function signalWithin(ms: number): AbortSignal | undefined {
  return ms === Number.POSITIVE_INFINITY ? undefined : AbortSignal.timeout(Math.ceil(ms));
}
