import { errorChainText } from "@fairlead/base";
import type { AgentConfig, ClientConnection } from "@fairlead/config";
import { selectionOf } from "@fairlead/intake";
import type { RequestObserver } from "@fairlead/watch";
import { version } from "../about/version.ts";
import type { Log } from "../log/log.ts";
import type { AgentParts } from "../run/parts.ts";
import { StartError } from "./start-error.ts";

export interface OpenedSource {
  readonly source: AgentParts["source"];
  /** Creates an Event in a namespace and gives the server's status; absent without an API server. */
  readonly postEvent?: (namespace: string, event: unknown) => Promise<number>;
}

/**
 * Where the objects come from: manifest files, or the API server.
 *
 * @throws StartError when no API server is known, or nothing could ever be read at the path
 */
export async function openSource(config: AgentConfig, nodeName: string, log: Log): Promise<OpenedSource> {
  const watch = await import("@fairlead/watch");
  const { createApiSource, createManifestsSource, loadConnection, postObject } = watch;
  const { manifests: path, client } = config;
  const selection = selectionOf(config);
  if (path !== undefined) {
    const reason = await watch.whyNoManifests(path);
    if (reason !== undefined) throw new StartError(`--manifests=${path}: ${reason}`);
    return { source: (onReport) => createManifestsSource({ path, nodeName, ...selection, onReport }) };
  }
  try {
    const connection = await loadConnection({ ...client, onWarning: (text) => log.warn(text) });
    const { qps, burst } = client;
    const { watchList } = config.features;
    const userAgent = `fairlead-proxy/${version}`;
    const host = new URL(connection.server).host;
    let observer: RequestObserver | undefined;
    return {
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
      async postEvent(namespace, event) {
        const began = performance.now();
        const reported = (code: number | undefined) =>
          observer?.answered({ method: "POST", host, code, watch: false, milliseconds: performance.now() - began });
        const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/events`;
        const posted = postObject(connection, path, event, userAgent);
        posted.then(reported, () => reported(undefined));
        return posted;
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
