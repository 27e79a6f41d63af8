import { fieldsOf, stringOf } from "@fairlead/base";
import {
  type ClusterObjects,
  FAIRLEAD,
  isKubeProxy,
  isManaged,
  KUBE_PROXY_DAEMON_SET,
  kubeProxySetup,
  NAMESPACE,
  networkResources,
  rememberedOptions,
  type SurveyObjects,
} from "@fairlead/migrate";
import { CommandFailure } from "../../frame/errors.ts";
import { type KubectlOptions, kubectl } from "../../node/kubectl.ts";
import { type ObjectName, objectName } from "./object-name.ts";

/** In a large cluster nodes and pods are many megabytes. */
const READ = { timeoutMs: 60_000, maxStdout: 1 << 28 };

/** What is to be changed, and where in it kube-proxy's DaemonSet is. */
export interface Cluster {
  readonly kubectl: KubectlOptions;
  readonly kubeProxy: ObjectName;
}

/**
 * Where kube-proxy's DaemonSet is to be looked for: where it is asked for, else where the migration under way has found
 * it, which Fairlead's DaemonSet remembers.
 *
 * @param asked `NAMESPACE/NAME`
 * @throws CommandFailure when the migration under way has another one, or kubectl fails
 */
export async function kubeProxyName(kubectl: KubectlOptions, asked: string | undefined): Promise<ObjectName> {
  const fairlead = await object(["daemonset", FAIRLEAD, of(NAMESPACE)], kubectl);
  const underWay = isManaged(fairlead) ? remembered(fairlead) : undefined;
  if (asked !== undefined && underWay !== undefined && asked !== underWay) {
    throw new CommandFailure(`--kube-proxy=${asked}: the migration that is under way takes the place of ${underWay}`);
  }
  return objectName(asked ?? underWay ?? KUBE_PROXY_DAEMON_SET);
}

/**
 * What a migration looks at.
 *
 * @throws CommandFailure when there is no kube-proxy, or kubectl fails
 */
export async function clusterObjects({ kubectl, kubeProxy: at }: Cluster): Promise<ClusterObjects> {
  const [kubeProxy, fairlead] = await Promise.all([
    object(["daemonset", at.name, of(at.namespace)], kubectl),
    object(["daemonset", FAIRLEAD, of(NAMESPACE)], kubectl),
  ]);
  if (kubeProxy === undefined) throw new CommandFailure(await notThere(at, kubectl));
  const [nodes, ...pods] = await Promise.all([
    items(["nodes"], kubectl),
    podsOf(kubeProxy, at.namespace, kubectl),
    podsOf(fairlead, NAMESPACE, kubectl),
  ]);
  return { kubeProxy, fairlead, nodes: nodes ?? [], pods: pods.flat() };
}

function remembered(fairlead: unknown): string {
  return stringOf(rememberedOptions(fairlead)["kubeProxy"]) ?? KUBE_PROXY_DAEMON_SET;
}

/** With those that may have been meant. */
async function notThere({ namespace, name }: ObjectName, options: KubectlOptions): Promise<string> {
  const others = (await items(["daemonsets", "--all-namespaces"], options)).filter(isKubeProxy).map(nameOf);
  const advice =
    others.length > 0
      ? `kube-proxy is the program of ${others.join(", ")}: give --kube-proxy=${others[0]}`
      : "migrate takes its place only; where kube-proxy is a part of another program or a static pod (k3s, RKE2, GKE) " +
        "turn it off there and install Fairlead by hand (docs/migrate-from-kube-proxy.md)";
  return `DaemonSet ${namespace}/${name} is not there: ${advice}`;
}

/** What is read once, to say what fits. */
export async function surveyObjects(kubeProxy: unknown, { kubectl, kubeProxy: at }: Cluster): Promise<SurveyObjects> {
  const names = [...new Set(kubeProxySetup(kubeProxy).mounts.map(({ configMap }) => configMap))];
  const found = names.map(async (name) => {
    return [name, await object(["configmap", name, of(at.namespace)], kubectl)] as const;
  });
  const configMaps = new Map(await Promise.all(found));
  const apiService = await object(["service", "kubernetes", "--namespace=default"], kubectl);
  return { kubeProxy, configMaps, apiService, networks: await networks(kubectl) };
}

async function networks(options: KubectlOptions): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const there = await kubectl(["api-resources", "--output=name", "--verbs=list"], options, READ);
  const names = new Set(there.stdout.split("\n"));
  const wanted = [...new Set(networkResources().map(({ plural, group }) => `${plural}.${group}`))];
  const found = wanted.filter((name) => names.has(name));
  const read = found.map(async (name) => [name, await items([name, "--all-namespaces"], options)] as const);
  return new Map(await Promise.all(read));
}

async function podsOf(daemonSet: unknown, namespace: string, options: KubectlOptions): Promise<readonly unknown[]> {
  const { spec } = (daemonSet ?? {}) as { spec?: { selector?: { matchLabels?: Record<string, string> } } };
  const labels = Object.entries(spec?.selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  if (labels.length === 0) return [];
  return items(["pods", of(namespace), `--selector=${labels.join(",")}`], options);
}

/** Undefined: it is not there. */
async function object(args: readonly string[], options: KubectlOptions): Promise<unknown> {
  const get = ["get", ...args, "--ignore-not-found", "--output=json"];
  const { stdout } = await kubectl(get, options, READ);
  return stdout.trim() === "" ? undefined : JSON.parse(stdout);
}

async function items(args: readonly string[], options: KubectlOptions): Promise<readonly unknown[]> {
  const { stdout } = await kubectl(["get", ...args, "--output=json"], options, READ);
  const list: { readonly items?: readonly unknown[] } = JSON.parse(stdout);
  return list.items ?? [];
}

function of(namespace: string): string {
  return `--namespace=${namespace}`;
}

function nameOf(object: unknown): string {
  const { namespace, name } = fieldsOf(fieldsOf(object)["metadata"]);
  return `${stringOf(namespace)}/${stringOf(name)}`;
}
