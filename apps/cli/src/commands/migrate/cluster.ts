import { fieldsOf, stringOf } from "@fairlead/base";
import { type Cluster, unlessMissing } from "../../cluster/cluster.ts";
import { CONFIG_MAPS, DAEMON_SETS, inNamespace, NODES, PODS, SERVICES } from "../../cluster/resources.ts";
import { CommandFailure } from "../../frame/errors.ts";
import { FAIRLEAD, KUBE_PROXY_DAEMON_SET, NAMESPACE } from "../../migrate/cluster/names.ts";
import { type ClusterObjects, isManaged, rememberedOptions } from "../../migrate/cluster/state.ts";
import { isKubeProxy, kubeProxySetup } from "../../migrate/survey/kube-proxy.ts";
import { networkResources } from "../../migrate/survey/networks.ts";
import type { SurveyObjects } from "../../migrate/survey/survey.ts";
import { type ObjectName, objectName } from "./object-name.ts";

/** What is to be changed, and where in it kube-proxy's DaemonSet is. */
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
 * @throws CommandFailure when the migration under way has another one, or the cluster cannot be read
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
 * What a migration looks at.
 *
 * @throws CommandFailure when there is no kube-proxy, or the cluster cannot be read
 */
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

function remembered(fairlead: unknown): string {
  return stringOf(rememberedOptions(fairlead)["kubeProxy"]) ?? KUBE_PROXY_DAEMON_SET;
}

/** With those that may have been meant. */
async function notThere({ namespace, name }: ObjectName, cluster: Cluster): Promise<string> {
  const others = (await cluster.list(DAEMON_SETS)).filter(isKubeProxy).map(nameOf);
  const advice =
    others.length > 0
      ? `kube-proxy is the program of ${others.join(", ")}: give --kube-proxy=${others[0]}`
      : "migrate takes its place only; where kube-proxy is a part of another program or a static pod (k3s, RKE2, GKE) " +
        "turn it off there and install Fairlead by hand (docs/migrate-from-kube-proxy.md); --to-mode reports on manifests, too (-f)";
  return `DaemonSet ${namespace}/${name} is not there: ${advice}`;
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

function nameOf(object: unknown): string {
  const { namespace, name } = fieldsOf(fieldsOf(object)["metadata"]);
  return `${stringOf(namespace)}/${stringOf(name)}`;
}
