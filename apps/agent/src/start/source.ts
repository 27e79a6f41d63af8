import { errorChainText } from "@fairlead/base";
import type { AgentConfig, ClientConnection } from "@fairlead/config";
import type { NodeEventsParts } from "@fairlead/intake";
import { selectionOf, serviceUID } from "@fairlead/intake";
import type { ObjectRequest, RequestObserver } from "@fairlead/watch";
import { version } from "../about/version.ts";
import type { Log } from "../log.ts";
import type { AgentParts } from "../run/parts.ts";
import { kubeconfigOf, type WatchedFile } from "../watched-files.ts";
import { StartError } from "./process.ts";

export interface OpenedSource {
  readonly source: AgentParts["source"];
  /** What it is reached by; absent without one. */
  readonly kubeconfig?: WatchedFile | undefined;
  /** Where Events go; absent without an API server. */
  readonly events?: Pick<NodeEventsParts, "post" | "serviceUID">;
}

/** Where the objects come from: manifest files, or the API server. */
export async function openSource(config: AgentConfig, nodeName: string, log: Log): Promise<OpenedSource> {
  const watch = await import("@fairlead/watch");
  const { createApiSource, createManifestsSource, loadConnection, postObject, requestObject } = watch;
  const { manifests: path, client } = config;
  const selection = selectionOf(config);
  if (path !== undefined) {
    const reason = await watch.whyNoManifests(path);
    if (reason !== undefined) throw new StartError(`--manifests=${path}: ${reason}`);
    return { source: (onReport) => createManifestsSource({ path, nodeName, ...selection, onReport }) };
  }
  try {
    const kubeconfig = await kubeconfigOf(client);
    const connection = await loadConnection({ ...client, onWarning: (text) => log.warn(text) });
    const { qps, burst } = client;
    const { watchList } = config.features;
    const userAgent = `fairlead-proxy/${version}`;
    const host = new URL(connection.server).host;
    let observer: RequestObserver | undefined;
    const observed = <T>(method: "GET" | "POST", answer: Promise<T>, codeOf: (answer: T) => number): Promise<T> => {
      const began = performance.now();
      const reported = (code: number | undefined) =>
        observer?.answered({ method, host, code, watch: false, milliseconds: performance.now() - began });
      answer.then(
        (given) => reported(codeOf(given)),
        () => reported(undefined),
      );
      return answer;
    };
    return {
      kubeconfig,
      source: (onReport, onRequest) => {
        observer = onRequest;
        const options = {
          connection,
          nodeName,
          ...selection,
          userAgent,
          qps,
          burst,
          watchList,
          protobuf: asksProtobuf(client),
        };
        return createApiSource({ ...options, onReport, onRequest });
      },
      events: {
        post(namespace, event) {
          const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
          return observed("POST", postObject(connection, path, event, userAgent), (status) => status);
        },
        serviceUID(namespace, name) {
          const send = (request: ObjectRequest) => {
            return observed("GET", requestObject(connection, request, userAgent), ({ status }) => status);
          };
          return serviceUID(send, namespace, name);
        },
      },
    };
  } catch (error) {
    throw new StartError(errorChainText(error), { cause: error });
  }
}

/** As client-go: acceptContentTypes says what is asked for, and contentType where it is empty. */
function asksProtobuf({ acceptContentTypes, contentType }: ClientConnection): boolean {
  return (acceptContentTypes || contentType).includes("application/vnd.kubernetes.protobuf");
}
