import { Agent, request } from "node:https";
import { text } from "node:stream/consumers";

export interface ApiObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: ApiMetadata;
  readonly [field: string]: unknown;
}

interface ApiMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly [field: string]: unknown;
}

/** The few verbs of the API that the test ground needs, as its administrator. */
export interface ApiClient {
  /** @throws ApiError */
  get(path: string): Promise<unknown>;
  /** POST to the object's collection; gives what the server made of it. @throws ApiError */
  create(object: ApiObject): Promise<ApiObject>;
  /**
   * JSON merge patch, or `strategic`: lists of named entries are merged. `path` as `objectPath` gives it, with
   * `/status` after it for that. @throws ApiError
   */
  patch(path: string, patch: unknown, type?: PatchType): Promise<ApiObject>;
  /** Nothing when it is not there. @throws ApiError */
  delete(path: string, gracePeriodSeconds?: number): Promise<void>;
}

type PatchType = "merge" | "strategic";

class ApiError extends Error {
  readonly status: number;

  constructor(method: string, path: string, status: number, body: string) {
    super(`${method} ${path}: ${status} ${body}`);
    this.name = "ApiError";
    this.status = status;
  }
}

export interface ApiConnection {
  /** Where the server, or what leads to it, listens. */
  readonly at: { readonly socketPath: string } | { readonly host: string; readonly port: number };
  /** PEM; what the server's certificate must be signed by. */
  readonly ca: string;
  readonly token: string;
  /** One of the names in the certificate; default `kubernetes`. */
  readonly name?: string;
}

const TIMEOUT_MS = 60_000;
/**
 * A connection without requests is closed after so long. The server closes it after 90 s (k8s.io/apiserver,
 * secure_serving.go), and a request that is written at that moment fails with EPIPE.
 */
const IDLE_MS = 30_000;
const MERGE_PATCH = "application/merge-patch+json";
const STRATEGIC_PATCH = "application/strategic-merge-patch+json";

export function createApiClient(connection: ApiConnection, idleMs = IDLE_MS): ApiClient & { close(): void } {
  const agent = new Agent({ keepAlive: true, timeout: idleMs });
  const call = (method: string, path: string, body?: unknown, type = "application/json") =>
    send(agent, connection, { method, path, body, type });
  return {
    get: async (path) => JSON.parse(await call("GET", path)),
    create: async (object) => JSON.parse(await call("POST", collectionPath(object), object)),
    patch: async (path, patch, type: PatchType = "merge") =>
      JSON.parse(await call("PATCH", path, patch, type === "merge" ? MERGE_PATCH : STRATEGIC_PATCH)),
    delete: async (path, gracePeriodSeconds = 0) => {
      try {
        await call("DELETE", path, { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds });
      } catch (error) {
        if (!(error instanceof ApiError && error.status === 404)) throw error;
      }
    },
    close: () => agent.destroy(),
  };
}

interface Call {
  readonly method: string;
  readonly path: string;
  readonly body: unknown;
  readonly type: string;
}

function send(
  agent: Agent,
  { at, ca, token, name = "kubernetes" }: ApiConnection,
  { method, path, body, type }: Call,
): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = body === undefined ? "" : JSON.stringify(body);
    const outgoing = request({
      agent,
      ...at,
      ca,
      // A socket has no name.
      servername: name,
      method,
      path,
      timeout: TIMEOUT_MS,
      headers: {
        // Node gives a DELETE's body no length of its own, and the server would take it for the next request.
        "content-length": Buffer.byteLength(sent),
        host: "kubernetes",
        authorization: `Bearer ${token}`,
        "content-type": type,
        accept: "application/json",
      },
    });
    outgoing.on("timeout", () => outgoing.destroy(new Error(`${method} ${path}: no answer in ${TIMEOUT_MS} ms`)));
    outgoing.on("error", reject);
    outgoing.on("response", (response) => {
      const status = response.statusCode ?? 0;
      const finish = (answer: string) =>
        status < 300 ? resolve(answer) : reject(new ApiError(method, path, status, answer));
      // An answer breaks off where the server ends.
      text(response).then(finish, reject);
    });
    outgoing.end(sent);
  });
}

const PLURALS: Readonly<Record<string, string>> = {
  CiliumNode: "ciliumnodes",
  CiliumPodIPPool: "ciliumpodippools",
  ClusterRole: "clusterroles",
  ClusterRoleBinding: "clusterrolebindings",
  Role: "roles",
  RoleBinding: "rolebindings",
  ClusterUserDefinedNetwork: "clusteruserdefinednetworks",
  ConfigMap: "configmaps",
  CustomResourceDefinition: "customresourcedefinitions",
  DaemonSet: "daemonsets",
  EndpointSlice: "endpointslices",
  FelixConfiguration: "felixconfigurations",
  IPPool: "ippools",
  Namespace: "namespaces",
  NetworkPolicy: "networkpolicies",
  Node: "nodes",
  Pod: "pods",
  Service: "services",
  ServiceAccount: "serviceaccounts",
  SpiderIPPool: "spiderippools",
  Subnet: "subnets",
  Vpc: "vpcs",
  UserDefinedNetwork: "userdefinednetworks",
  ValidatingWebhookConfiguration: "validatingwebhookconfigurations",
};

export function collectionPath({
  apiVersion,
  kind,
  metadata,
}: Pick<ApiObject, "apiVersion" | "kind" | "metadata">): string {
  const plural = PLURALS[kind];
  if (plural === undefined) throw new Error(`no path is known for kind ${kind}`);
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  const { namespace } = metadata;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

export function objectPath(object: Pick<ApiObject, "apiVersion" | "kind" | "metadata">): string {
  return `${collectionPath(object)}/${object.metadata.name}`;
}
