import {
  type ClusterObjects,
  FAIRLEAD,
  KUBE_PROXY,
  kubeProxySetup,
  NAMESPACE,
  networkResources,
  type SurveyObjects,
} from "@fairlead/migrate";
import { CommandFailure } from "../../frame/errors.ts";
import { type KubectlOptions, kubectl } from "../../node/kubectl.ts";

/** In a large cluster nodes and pods are many megabytes. */
const READ = { timeoutMs: 60_000, maxStdout: 1 << 28 };

const OF_SYSTEM = `--namespace=${NAMESPACE}`;

/**
 * What a migration looks at.
 *
 * @throws CommandFailure when there is no kube-proxy, or kubectl fails
 */
export async function clusterObjects(options: KubectlOptions): Promise<ClusterObjects> {
  const [kubeProxy, fairlead] = await Promise.all(
    [KUBE_PROXY, FAIRLEAD].map((name) => object(["daemonset", name, OF_SYSTEM], options)),
  );
  if (kubeProxy === undefined) {
    throw new CommandFailure(
      `DaemonSet ${NAMESPACE}/${KUBE_PROXY} is not there: migrate takes its place only; where kube-proxy is a part of another ` +
        "program or a static pod (k3s, RKE2, GKE) turn it off there and install Fairlead by hand (docs/migrate-from-kube-proxy.md)",
    );
  }
  const [nodes, ...pods] = await Promise.all([
    items(["nodes"], options),
    ...[kubeProxy, fairlead].map((daemonSet) => podsOf(daemonSet, options)),
  ]);
  return { kubeProxy, fairlead, nodes: nodes ?? [], pods: pods.flat() };
}

/** What is read once, to say what fits. */
export async function surveyObjects(kubeProxy: unknown, options: KubectlOptions): Promise<SurveyObjects> {
  const names = [...new Set(kubeProxySetup(kubeProxy).mounts.map(({ configMap }) => configMap))];
  const found = names.map(async (name) => [name, await object(["configmap", name, OF_SYSTEM], options)] as const);
  const configMaps = new Map(await Promise.all(found));
  const apiService = await object(["service", "kubernetes", "--namespace=default"], options);
  return { kubeProxy, configMaps, apiService, networks: await networks(options) };
}

async function networks(options: KubectlOptions): Promise<ReadonlyMap<string, readonly unknown[]>> {
  const there = await kubectl(["api-resources", "--output=name", "--verbs=list"], options, READ);
  const names = new Set(there.stdout.split("\n"));
  const wanted = [...new Set(networkResources().map(({ plural, group }) => `${plural}.${group}`))];
  const found = wanted.filter((name) => names.has(name));
  const read = found.map(async (name) => [name, await items([name, "--all-namespaces"], options)] as const);
  return new Map(await Promise.all(read));
}

async function podsOf(daemonSet: unknown, options: KubectlOptions): Promise<readonly unknown[]> {
  const { spec } = (daemonSet ?? {}) as { spec?: { selector?: { matchLabels?: Record<string, string> } } };
  const labels = Object.entries(spec?.selector?.matchLabels ?? {}).map(([key, value]) => `${key}=${value}`);
  if (labels.length === 0) return [];
  return items(["pods", OF_SYSTEM, `--selector=${labels.join(",")}`], options);
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
