import { waitUntil } from "../../../agent/wait-until.ts";
import type { CniGround } from "../../../cni/flavor.ts";
import type { ApiClient, ApiObject } from "../../../control-plane/api-client.ts";

type Daemon = Parameters<CniGround["daemon"]>[0];

/** What the daemons of one pod network have in common. */
export interface DaemonSetFields {
  /** The network's name. */
  readonly network: string;
  readonly image: string;
  /** The network's folder on this machine: pods have it at the same path. */
  readonly folder: string;
  /** The same folder on the nodes. */
  readonly nodeFolder: string;
}

export const NETWORK_LABEL = "fairlead.dev/e2e-network";
const START_MS = 120_000;
const PAUSE_MS = 200;
const PODS = "/api/v1/namespaces/kube-system/pods";

/**
 * Runs a network's daemons in DaemonSets, one for each kind of daemon: it is on the nodes that have its label. A daemon
 * that is asked for on one more node is one more label.
 */
export function daemonsInPods(fields: DaemonSetFields, api: ApiClient): CniGround["daemon"] {
  const made = new Map<string, Promise<unknown>>();
  return async (daemon) => {
    const object = daemonSet(fields, daemon);
    const { name } = object.metadata;
    const making = made.get(name) ?? api.create(object);
    made.set(name, making);
    await making;
    await api.patch(`/api/v1/nodes/${daemon.node.name}`, { metadata: { labels: { [labelOf(name)]: "" } } });
    const of = `labelSelector=app%3D${name}&fieldSelector=spec.nodeName%3D${daemon.node.name}`;
    const started = async () => {
      const { items } = (await api.get(`${PODS}?${of}`)) as PodList;
      return items.some(({ status }) => status?.containerStatuses?.[0]?.ready === true) ? true : undefined;
    };
    await waitUntil(`the start of ${name} on ${daemon.node.name}`, START_MS, started, PAUSE_MS);
  };
}

interface PodList {
  readonly items: readonly {
    readonly status?: { readonly containerStatuses?: readonly { readonly ready: boolean }[] };
  }[];
}

/** What a daemon is told is the same on every node, but for the node's name, which the pod knows. */
export function daemonSet(fields: DaemonSetFields, { node, name, argv, env = {} }: Daemon): ApiObject {
  const { network, image, folder, nodeFolder } = fields;
  const part = name.startsWith(`${node.name}-`) ? name.slice(node.name.length + 1) : name;
  const own = `${network}-${part}`;
  const labels = { app: own, [NETWORK_LABEL]: network };
  const anyNode = (text: string) => text.replaceAll(whole(node.name), "$(NODE_NAME)");
  const container = {
    name: part,
    image,
    command: argv.map(anyNode),
    env: [
      { name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } },
      ...Object.entries(env).map(([key, value]) => ({ name: key, value: anyNode(value) })),
    ],
    securityContext: { privileged: true },
    volumeMounts: [{ name: "folder", mountPath: folder }],
  };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: { name: own, namespace: "kube-system", labels },
    spec: {
      selector: { matchLabels: { app: own } },
      template: {
        metadata: { labels },
        spec: {
          hostNetwork: true,
          automountServiceAccountToken: false,
          priorityClassName: "system-node-critical",
          nodeSelector: { [labelOf(own)]: "" },
          tolerations: [{ operator: "Exists" }],
          containers: [container],
          volumes: [{ name: "folder", hostPath: { path: nodeFolder } }],
        },
      },
    },
  };
}

function labelOf(daemonSetName: string): string {
  return `fairlead.dev/e2e-${daemonSetName}`;
}

/** One node's name may be the beginning of another's. */
function whole(name: string): RegExp {
  return new RegExp(`(?<![\\w-])${name}(?![\\w-])`, "g");
}
