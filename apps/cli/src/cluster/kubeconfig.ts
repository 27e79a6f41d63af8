import { isObject, type RawObject, systemClock, textAt, valueAt } from "@fairlead/base";
import {
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
import { type ClusterAccess, isInPod, kubeconfigFiles } from "./access.ts";
import { mergedKubeconfig } from "./merged.ts";

/** A cluster as the client library knows it. */
export interface OpenKubeconfig {
  readonly config: KubeConfig;
  /** Base URL without a trailing slash. */
  readonly server: string;
  /** For messages. */
  readonly file: string;
  /** The context's; absent: it names none. */
  readonly namespace?: string;
}

/** Of one command line: credentials are requested once. */
const opened = new WeakMap<Context["env"], Map<string, Promise<OpenKubeconfig>>>();

/**
 * The cluster that is meant, with its credentials, as kubectl finds them: certificates, tokens, programs (`exec`),
 * OpenID Connect (`auth-provider`), a pod's service account.
 *
 * @throws ConnectionError naming the file, the field and what would be right
 */
export function openKubeconfig(access: ClusterAccess, context: Pick<Context, "env" | "warn">): Promise<OpenKubeconfig> {
  const known = opened.get(context.env) ?? new Map<string, Promise<OpenKubeconfig>>();
  opened.set(context.env, known);
  const files = kubeconfigFiles(access, context.env);
  const key = JSON.stringify([files, access.context]);
  const opening = known.get(key) ?? open(files, access.context, context);
  known.set(key, opening);
  return opening;
}

async function open(
  files: readonly string[],
  context: string | undefined,
  { env, warn }: Pick<Context, "env" | "warn">,
): Promise<OpenKubeconfig> {
  if (files.length === 0) return inPod(env);
  const chosen = await chosenFrom(files, context);
  const { server, secure } = checkedServer(chosen, undefined, warn);
  const { KubeConfig } = await import("./library.ts");
  const config = new KubeConfig();
  const ask = secure ? askedCredentials(chosen, warn) : undefined;
  if (ask !== undefined) config.addAuthenticator(authenticator(ask));
  config.loadFromString(JSON.stringify(forLibrary(chosen, server, secure)));
  const { file, namespace } = chosen;
  return { config, server, file, ...(namespace !== undefined && { namespace }) };
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
  return chosenContext(files.join(", "), mergedKubeconfig(written), context);
}

async function inPod(env: Context["env"]): Promise<OpenKubeconfig> {
  if (!isInPod(env)) {
    throw new ConnectionError(
      "no kubeconfig: give --kubeconfig, set KUBECONFIG, or run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)",
    );
  }
  const { KubeConfig } = await import("./library.ts");
  const config = new KubeConfig();
  config.loadFromCluster();
  return { config, server: config.getCurrentCluster()?.server ?? "", file: "the pod's service account" };
}

const NAME = "chosen";
/** What the library reads of a user; `exec` and `tokenFile` are asked for by `askedCredentials`. */
const NOT_FOR_LIBRARY = ["exec", "tokenFile"];
const UNSUPPORTED = ["as-groups", "as-uid", "as-user-extra"];

/**
 * The context as the library takes it: it refuses servers without TLS, does not trust the cluster's CA
 * where there is no user, prefers a file to the data that is written alongside it, and a token to its file.
 *
 * @throws ConnectionError for what it would leave out without a word
 */
function forLibrary({ file, cluster, user }: Kubeconfig, server: string, secure: boolean): object {
  const left = UNSUPPORTED.find((field) => user[field] !== undefined);
  if (left !== undefined) {
    throw new ConnectionError(`${file}: users[].user.${left} is not supported: use only \`as\`, or another user`);
  }
  const hasTokenFile = textAt(user, "tokenFile") !== undefined;
  const dropped = [...NOT_FOR_LIBRARY, ...(hasTokenFile ? ["token"] : [])];
  const own = secure ? withoutFields(preferringData(user), dropped) : { as: user["as"] };
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
