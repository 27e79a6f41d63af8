import { textAt } from "../raw.ts";
import type { ApiConnection } from "./connection.ts";
import { ConnectionError } from "./connection-error.ts";
import { kubeconfigCredentials, readText, readToken } from "./credentials.ts";
import { readKubeconfig } from "./kubeconfig.ts";

export interface ConnectionOptions {
  /** Path of a kubeconfig file; absent or "": the service account of the pod that this runs in. */
  readonly kubeconfig?: string;
  /** `--master`: overrides the server's URL; alone, without kubeconfig, it means no credentials at all. */
  readonly master?: string;
  /** Follows `exec` and `auth-provider` of a user, which start programs or ask other servers. Default: refused. */
  readonly allowExecCredentials?: boolean;
  /** For tests: variables and service account of the pod. Default process.env and Kubernetes' folder. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly serviceAccountDir?: string;
}

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount";

/**
 * Finds the API server and its credentials, as client-go's BuildConfigFromFlags does.
 *
 * @throws ConnectionError naming the file, the field and what would be right
 */
export async function loadConnection(options: ConnectionOptions): Promise<ApiConnection> {
  const master =
    options.master === undefined || options.master === "" ? undefined : serverUrl("--master", options.master);
  if (options.kubeconfig !== undefined && options.kubeconfig !== "") {
    return fromKubeconfig(options.kubeconfig, master, options.allowExecCredentials === true);
  }
  if (master !== undefined) return { server: master, credentials: async () => ({ headers: {}, tls: {} }) };
  return inCluster(options.env ?? process.env, options.serviceAccountDir ?? serviceAccount);
}

async function fromKubeconfig(file: string, master: string | undefined, allow: boolean): Promise<ApiConnection> {
  const kubeconfig = await readKubeconfig(file);
  const written = textAt(kubeconfig.cluster, "server");
  if (master === undefined && written === undefined) throw new ConnectionError(`${file}: the cluster has no server`);
  const server = master ?? serverUrl(`${file}: server`, written ?? "");
  const proxyUrl = textAt(kubeconfig.cluster, "proxy-url");
  if (proxyUrl !== undefined && !/^https?:\/\//.test(proxyUrl)) {
    throw new ConnectionError(`${file}: proxy-url ${proxyUrl} is not an http or https URL`);
  }
  const connection = { server, credentials: kubeconfigCredentials(kubeconfig, allow) };
  return proxyUrl === undefined ? connection : { ...connection, proxyUrl };
}

function inCluster(env: Readonly<Record<string, string | undefined>>, dir: string): ApiConnection {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port } = env;
  if (!host || !port) {
    throw new ConnectionError(
      "no API server known: give --kubeconfig or --master, or run in a pod (KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT)",
    );
  }
  const server = serverUrl("KUBERNETES_SERVICE_HOST", `https://${host.includes(":") ? `[${host}]` : host}:${port}`);
  return {
    server,
    credentials: async () => ({
      headers: { authorization: `Bearer ${await readToken(`${dir}/token`)}` },
      tls: { ca: await readText("service account CA", `${dir}/ca.crt`) },
    }),
  };
}

/** `host:port` alone means http, as in client-go. */
function serverUrl(what: string, text: string): string {
  const url = URL.parse(/^[a-z]+:\/\//i.test(text) ? text : `http://${text}`);
  if (url === null || !/^https?:$/.test(url.protocol) || url.hostname === "") {
    throw new ConnectionError(`${what} ${text} is not a URL such as https://192.0.2.10:6443`);
  }
  return url.origin + url.pathname.replace(/\/+$/, "");
}
