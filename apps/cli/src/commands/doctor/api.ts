import { errorText } from "@fairlead/base";
import type { ApiFacts } from "@fairlead/inspect";
import { type Access, createApiSource, isAllowed } from "@fairlead/watch";
import { type ClusterAccess, hasCluster } from "../../cluster/access.ts";
import type { Context } from "../../frame/context.ts";
import { apiConnection } from "../../inputs/cluster-access.ts";
import { version } from "../../version.ts";
import { otherNetworks } from "./objects.ts";

/** What system:node-proxier allows and the agent needs. */
const NEEDED: readonly Access[] = [
  { verb: "list", group: "", resource: "services" },
  { verb: "watch", group: "", resource: "services" },
  { verb: "list", group: "discovery.k8s.io", resource: "endpointslices" },
  { verb: "watch", group: "discovery.k8s.io", resource: "endpointslices" },
  { verb: "list", group: "", resource: "nodes" },
  { verb: "watch", group: "", resource: "nodes" },
  { verb: "create", group: "events.k8s.io", resource: "events" },
];

/** Milliseconds that other networks' objects are waited for. */
const OBJECTS_WAIT = 10_000;

/** Asks the cluster's API server what it allows; without a known cluster it asks none. */
export async function apiFacts(
  options: ClusterAccess & { readonly on: string | undefined },
  context: Pick<Context, "env" | "warn">,
): Promise<ApiFacts> {
  if (!hasCluster(options, context)) return { kind: "unasked" };
  try {
    const connection = await apiConnection(options, context);
    const answers = await Promise.all(
      NEEDED.map(async (access) =>
        (await isAllowed(connection, access, `fairlead/${version}`)) ? [] : [accessText(access)],
      ),
    );
    const objects = createApiSource({ connection, nodeName: "", userAgent: `fairlead/${version}`, onReport: () => {} });
    const others = await otherNetworks(objects, AbortSignal.timeout(OBJECTS_WAIT));
    // On a node it is the agent's kubeconfig that is given; from afar it is that of whoever asks, or --as.
    const ofOther = options.on !== undefined && options.as === undefined;
    return { kind: "answers", server: connection.server, denied: answers.flat(), ofOther, ...others };
  } catch (error) {
    return { kind: "unreachable", reason: errorText(error) };
  }
}

function accessText({ verb, group, resource }: Access): string {
  return `${verb} ${resource}${group === "" ? "" : `.${group}`}`;
}
