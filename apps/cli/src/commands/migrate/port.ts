/** The cluster of a migration: what is read and written by the Kubernetes client library. */

import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, objectAt, stringOf } from "@fairlead/base";
import { type Cluster, unlessMissing } from "../../cluster/cluster.ts";
import type { Container } from "../../cluster/pods.ts";
import {
  CONFIG_MAPS,
  DAEMON_SETS,
  inNamespace,
  isReady,
  NODES,
  nameOf,
  PODS,
  type Resource,
  SERVICES,
  whyNotReady,
} from "../../cluster/resources.ts";
import { CommandFailure, UsageError } from "../../frame/errors.ts";
import { CHECK_LABEL, checkPod, fairleadObjects, fingerprint, type Installation } from "../../migrate/manifests.ts";
import type { MigrationPort, Verified } from "../../migrate/migrate.ts";
import {
  type ClusterObjects,
  FAIRLEAD,
  isManaged,
  KUBE_PROXY_DAEMON_SET,
  MANAGED_BY_LABEL,
  MANAGER,
  migrationState,
  NAMESPACE,
  PROBLEM_ANNOTATION,
  PROVEN_ANNOTATION,
  PROXY_LABEL,
  type ProxyName,
  placementPatch,
  provenText,
  rememberedOptions,
} from "../../migrate/state.ts";
import { isKubeProxy, kubeProxySetup, networkResources, type SurveyObjects } from "../../migrate/survey.ts";

const OWN_RESOURCES: readonly Resource[] = [
  { apiVersion: "v1", plural: "serviceaccounts", namespace: NAMESPACE },
  inNamespace(CONFIG_MAPS, NAMESPACE),
  { apiVersion: "rbac.authorization.k8s.io/v1", plural: "clusterrolebindings" },
];

/** The longest reason that is left on a node. */
const REASON = 1_000;

/**
 * A migration's way to the cluster.
 *
 * @param installation absent: nothing is installed, on the way back
 */
export function clusterPort(
  changed: ChangedCluster,
  installation: Installation | undefined,
  verify: (node: string, proxy: ProxyName) => Promise<Verified>,
): MigrationPort {
  const { cluster } = changed;
  const patchNode = (node: string, metadata: object) => cluster.patch(NODES, node, { metadata });
  const marks = { [PROVEN_ANNOTATION]: null, [PROBLEM_ANNOTATION]: null };
  const mode = installation?.options.mode;
  const wanted = installation && { manifests: fingerprint(installation), mode };
  const removeAll = async (resource: Resource, labels: string) => {
    for (const object of await cluster.list(resource, { labels })) await cluster.remove(resource, nameOf(object));
  };
  const observe = async () => migrationState(await clusterObjects(changed), wanted);
  return {
    observe,
    verify,
    install: async (placement) => {
      if (installation === undefined) throw new Error("there is nothing to install");
      for (const object of fairleadObjects(installation, placement)) await cluster.apply(object);
    },
    uninstall: async () => {
      // Its pods go with it, before what they live on does.
      await cluster.remove(inNamespace(DAEMON_SETS, NAMESPACE), FAIRLEAD, "first");
      for (const resource of OWN_RESOURCES) await removeAll(resource, `${MANAGED_BY_LABEL}=${MANAGER}`);
      // A run that was killed while it looked at a node leaves its pod.
      await removeAll(inNamespace(PODS, NAMESPACE), CHECK_LABEL);
    },
    place: async (proxy, placement) => {
      const { kubeProxy, fairlead } = await clusterObjects(changed);
      const [daemonSet, { namespace, name }] =
        proxy === FAIRLEAD ? [fairlead, { namespace: NAMESPACE, name: FAIRLEAD }] : [kubeProxy, changed.kubeProxy];
      const patch = placementPatch(proxy, daemonSet, placement);
      await cluster.patch(inNamespace(DAEMON_SETS, namespace), name, patch);
    },
    assign: (node: string, to: ProxyName) => patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations: marks }),
    putBack: (node: string, to: ProxyName, reason: string) => {
      const annotations = { ...marks, [PROBLEM_ANNOTATION]: reason.slice(0, REASON) };
      return patchNode(node, { labels: { [PROXY_LABEL]: to }, annotations });
    },
    prove: (node, proxy) => patchNode(node, { annotations: { [PROVEN_ANNOTATION]: provenText(proxy, mode) } }),
    unmark: async () => {
      const { nodes } = await observe();
      const marked = nodes.filter(({ label, proven, problem }) => (label ?? proven ?? problem) !== undefined);
      for (const { name } of marked) await patchNode(name, { labels: { [PROXY_LABEL]: null }, annotations: marks });
    },
  };
}

interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

export interface ChangedCluster {
  readonly cluster: Cluster;
  readonly kubeProxy: ObjectName;
}

const OWN_DAEMON_SETS = inNamespace(DAEMON_SETS, NAMESPACE);

/**
 * Where kube-proxy's DaemonSet is to be looked for: where it is asked for, else where the migration under way has found
 * it, which Fairlead's DaemonSet remembers.
 *
 * @param asked `NAMESPACE/NAME`
 */
export async function kubeProxyName(cluster: Cluster, asked: string | undefined): Promise<ObjectName> {
  const fairlead = await cluster.get(OWN_DAEMON_SETS, FAIRLEAD);
  const underWay = isManaged(fairlead) ? remembered(fairlead) : undefined;
  if (asked !== undefined && underWay !== undefined && asked !== underWay) {
    throw new CommandFailure(`--kube-proxy=${asked}: the migration that is under way takes the place of ${underWay}`);
  }
  return objectName(asked ?? underWay ?? KUBE_PROXY_DAEMON_SET);
}

/**
 * Whether there is a kube-proxy whose place a migration takes, or has taken. Otherwise Fairlead of another installation
 * serves.
 */
export async function isForMigration({ cluster, kubeProxy: at }: ChangedCluster): Promise<boolean> {
  const kubeProxy = await cluster.get(inNamespace(DAEMON_SETS, at.namespace), at.name);
  const fairlead = await cluster.get(OWN_DAEMON_SETS, FAIRLEAD);
  return kubeProxy !== undefined && (fairlead === undefined || isManaged(fairlead));
}

/** What a migration looks at. */
export async function clusterObjects({ cluster, kubeProxy: at }: ChangedCluster): Promise<ClusterObjects> {
  const [kubeProxy, fairlead] = await Promise.all([
    cluster.get(inNamespace(DAEMON_SETS, at.namespace), at.name),
    cluster.get(OWN_DAEMON_SETS, FAIRLEAD),
  ]);
  if (kubeProxy === undefined) throw new CommandFailure(await notThere(at, cluster));
  const [nodes, ...pods] = await Promise.all([
    cluster.list(NODES),
    podsOf(kubeProxy, at.namespace, cluster),
    podsOf(fairlead, NAMESPACE, cluster),
  ]);
  return { kubeProxy, fairlead, nodes, pods: pods.flat() };
}

/** What is read once, to say what fits. */
export async function surveyObjects(
  kubeProxy: unknown,
  { cluster, kubeProxy: at }: ChangedCluster,
): Promise<SurveyObjects> {
  const names = [...new Set(kubeProxySetup(kubeProxy).mounts.map(({ configMap }) => configMap))];
  const found = names.map(async (name) => {
    return [name, await cluster.get(inNamespace(CONFIG_MAPS, at.namespace), name)] as const;
  });
  const configMaps = new Map(await Promise.all(found));
  const apiService = await cluster.get(inNamespace(SERVICES, "default"), "kubernetes");
  return { kubeProxy, configMaps, apiService, networks: await networks(cluster) };
}

export async function withCheckPod<T>(
  node: string,
  image: string,
  cluster: Cluster,
  signal: AbortSignal,
  use: (pod: Container) => Promise<T>,
): Promise<T> {
  const manifest = checkPod(node, image);
  const { name, namespace } = manifest.metadata;
  const pods = inNamespace(PODS, namespace);
  // One that a killed run has left may be ending.
  await cluster.remove(pods, name);
  try {
    await cluster.create(manifest);
    await ready(async () => fieldsOf(await cluster.get(pods, name)), `pod ${namespace}/${name}`, signal);
    return await use({ name, namespace, container: "check" });
  } finally {
    await cluster.remove(pods, name);
  }
}

/** What `--kube-proxy` was given, as `NAMESPACE/NAME`. */
export function givenDaemonSet(text: string | undefined): string | undefined {
  if (text === undefined) return undefined;
  const parts = text.split("/");
  if (parts.length > 2 || !parts.every((part) => /^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$/.test(part))) {
    throw new UsageError(`--kube-proxy=${text}: give DAEMONSET or NAMESPACE/DAEMONSET`);
  }
  return parts.length === 1 ? `${NAMESPACE}/${text}` : text;
}

function remembered(fairlead: unknown): string {
  return stringOf(rememberedOptions(fairlead)["kubeProxy"]) ?? KUBE_PROXY_DAEMON_SET;
}

/** With those that may have been meant. */
async function notThere({ namespace, name }: ObjectName, cluster: Cluster): Promise<string> {
  const others = (await cluster.list(DAEMON_SETS)).filter(isKubeProxy).map(metadataName);
  const advice =
    others.length > 0
      ? `kube-proxy is the program of ${others.join(", ")}: give --kube-proxy=${others[0]}`
      : "migrate takes its place only; where kube-proxy is a part of another program or a static pod (k3s, RKE2, GKE) " +
        "turn it off there and install Fairlead by hand (docs/migrate-from-kube-proxy.md); --to-mode reports on manifests, too (-f)";
  return `DaemonSet ${namespace}/${name} is not there: ${advice}`;
}

/** Of the versions of a resource the first that the server has. */
async function networks(cluster: Cluster): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const found = new Map<string, readonly unknown[]>();
  const read = networkResources().map(async ({ group, version, plural }) => {
    return [
      `${plural}.${group}`,
      await unlessMissing(cluster.list({ apiVersion: `${group}/${version}`, plural })),
    ] as const;
  });
  for (const [name, items] of await Promise.all(read)) {
    if (items !== undefined && !found.has(name)) found.set(name, items);
  }
  return found;
}

async function podsOf(daemonSet: unknown, namespace: string, cluster: Cluster): Promise<readonly unknown[]> {
  const { spec } = (daemonSet ?? {}) as { spec?: { selector?: { matchLabels?: Record<string, string> } } };
  const labels = Object.entries(spec?.selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  if (labels.length === 0) return [];
  return cluster.list(inNamespace(PODS, namespace), { labels: labels.join(",") });
}

function metadataName(object: unknown): string {
  const { namespace, name } = objectAt(object, "metadata");
  return `${stringOf(namespace)}/${stringOf(name)}`;
}

/** Milliseconds until Fairlead's image is on the node and runs there, and between two looks. */
const START_MS = 120_000;
const LOOK_MS = 1_000;

type Pod = ReturnType<typeof fieldsOf>;

async function ready(look: () => Promise<Pod>, what: string, signal: AbortSignal): Promise<void> {
  const end = performance.now() + START_MS;
  for (;;) {
    const pod = await look();
    if (isReady(pod)) return;
    if (performance.now() > end) {
      throw new CommandFailure(`${what} is not ready after ${START_MS / 1000} s: ${whyNotReady(pod)}`);
    }
    await sleep(LOOK_MS, undefined, { signal });
  }
}

function objectName(text: string): ObjectName {
  const [namespace = "", name = ""] = text.split("/");
  return { namespace, name };
}
