/** Where the API server is: from kubeconfig, from the pod's service account, or by its address. */

import { bracketed, type Clock, isObject, systemClock, textAt, valueAt } from "@fairlead/base";
import {
  ConnectionError,
  chosenContext,
  type Kubeconfig,
  kubeconfigCredentials,
  readKubeconfigFile,
  readText,
  readToken,
} from "./credentials.ts";
import { type ApiConnection, urlForMessages } from "./http.ts";

/** Where the connection to the API server is described. */
export interface ConnectionOptions {
  /** Path of a kubeconfig file; absent or "": the service account of the pod that this runs in. */
  readonly kubeconfig?: string;
  /** `--master`: overrides the server's URL; only, without kubeconfig, it means no credentials at all. */
  readonly master?: string;
  /** Follows `exec` of a user, which starts a program. Default: refused. */
  readonly allowExecCredentials?: boolean;
  /**
   * Called with a sentence about what is less safe than it looks, and about a program for credentials that takes long.
   */
  readonly onWarning?: (text: string) => void;
  /**
   * For tests: virtual time for programs, variables and service account of the pod. Default process.env and Kubernetes'
   * folder.
   */
  readonly clock?: Clock;
  /** Environment variables. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Folder with the service account's token and certificate. */
  readonly serviceAccountDir?: string;
}

const SERVICE_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Finds the API server and its credentials, as client-go's BuildConfigFromFlags does.
 *
 * @throws ConnectionError naming the file, the field and what would be right
 */
export async function loadConnection(options: ConnectionOptions): Promise<ApiConnection> {
  const warn = options.onWarning ?? (() => {});
  const { kubeconfig = "", master: asked = "" } = options;
  const master = asked === "" ? undefined : serverUrl("--master", asked, warn);
  if (kubeconfig !== "") {
    return fromKubeconfig(chosenContext(kubeconfig, await readKubeconfigFile(kubeconfig)), master, options);
  }
  if (master !== undefined) return { server: master, credentials: async () => ({ headers: {}, tls: {} }) };
  return inCluster(options.env ?? process.env, options.serviceAccountDir ?? SERVICE_ACCOUNT);
}

function fromKubeconfig(
  kubeconfig: Kubeconfig,
  master: string | undefined,
  { allowExecCredentials, onWarning: warn = () => {}, clock = systemClock }: ConnectionOptions,
): ApiConnection {
  const { file, cluster } = kubeconfig;
  const { server, secure } = checkedServer(kubeconfig, master, warn);
  const credentials = kubeconfigCredentials(kubeconfig, {
    allowExec: allowExecCredentials === true,
    secure,
    warn,
    clock,
  });
  const proxyUrl = textAt(cluster, "proxy-url");
  if (proxyUrl === undefined) return { server, credentials };
  if (!/^https?:$/.test(URL.parse(proxyUrl)?.protocol ?? "")) {
    throw new ConnectionError(`${file}: proxy-url ${urlForMessages(proxyUrl)} is not an http or https URL`);
  }
  return { server, credentials, proxyUrl };
}

/**
 * The server of a kubeconfig's cluster.
 *
 * @param master in the place of the written one
 * @param warn gets what is less safe than it looks
 * @returns its URL without a trailing slash, and whether credentials may be sent there: only over TLS, as client-go
 * @throws ConnectionError for what is not a URL, or contradicts itself
 */
export function checkedServer(
  kubeconfig: Kubeconfig,
  master: string | undefined,
  warn: (text: string) => void,
): { readonly server: string; readonly secure: boolean } {
  const { file, cluster } = kubeconfig;
  const written = textAt(cluster, "server");
  if (master === undefined && written === undefined) throw new ConnectionError(`${file}: the cluster has no server`);
  const server = master ?? serverUrl(`${file}: server`, written ?? "", warn);
  const secure = server.startsWith("https:");
  if (secure) checkTrust(kubeconfig, server, warn);
  else if (hasCredentials(kubeconfig)) {
    warn(`${file}: the user's credentials are not sent to ${server}: that is not https`);
  }
  return { server, secure };
}

/** @throws ConnectionError as client-go's transport does: both cannot be meant */
function checkTrust({ file, cluster }: Kubeconfig, server: string, warn: (text: string) => void): void {
  if (valueAt(cluster, "insecure-skip-tls-verify") !== true) return;
  const ca = ["certificate-authority-data", "certificate-authority"].find(
    (field) => textAt(cluster, field) !== undefined,
  );
  if (ca !== undefined) {
    throw new ConnectionError(`${file}: insecure-skip-tls-verify is true and ${ca} is set: remove one of them`);
  }
  warn(
    `${file}: insecure-skip-tls-verify is true: an attacker on the way to ${server} can steal the credentials and ` +
      "forge its answers; set certificate-authority-data instead",
  );
}

const CREDENTIAL_FIELDS = ["token", "tokenFile", "username", "client-certificate", "client-certificate-data"];

function hasCredentials({ user }: Kubeconfig): boolean {
  return (
    CREDENTIAL_FIELDS.some((field) => textAt(user, field) !== undefined) ||
    ["exec", "auth-provider"].some((field) => isObject(valueAt(user, field)))
  );
}

function inCluster(env: Readonly<Record<string, string | undefined>>, dir: string): ApiConnection {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new ConnectionError(
      "no API server configured: set --kubeconfig or --master, or run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)",
    );
  }
  const address = `https://${bracketed(host)}:${port}`;
  const server = serverUrl("KUBERNETES_SERVICE_HOST", address, () => {});
  return {
    server,
    credentials: async () => ({
      headers: { authorization: `Bearer ${await readToken(`${dir}/token`)}` },
      tls: { ca: await readText("service account CA", `${dir}/ca.crt`) },
    }),
  };
}

/** `host:port` without a scheme means http, as in client-go. */
function serverUrl(what: string, text: string, warn: (text: string) => void): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    throw new ConnectionError(`${what} ${urlForMessages(text)} is not a URL such as https://192.0.2.10:6443`);
  }
  if (url.username !== "" || url.password !== "") {
    warn(`${what} ${urlForMessages(text)}: the user in the URL is ignored; set it in users[].user of a kubeconfig`);
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}
