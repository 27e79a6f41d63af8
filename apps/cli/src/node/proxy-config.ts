/** The configuration of a node's proxy: what the running one serves, or what it is installed with. */

import { fieldsOf, isObject, parseJSON, stringOf, valueAt } from "@fairlead/base";
import { ApiError } from "../cluster/api-error.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { CONFIG_MAPS, DAEMON_SETS, inNamespace, SYSTEM_NAMESPACE } from "../cluster/resources.ts";
import { CommandFailure } from "../frame/errors.ts";
import { isKubeProxyImage, type KubeProxySetup, kubeProxySetup } from "../migrate/survey.ts";
import { okText, type ProxyAccess } from "./agent-endpoint.ts";
import type { PlacedPod } from "./agent-pods.ts";

/** A proxy's configuration, in the form of a command line and the file that it names. */
export interface ProxyConfig {
  /** Where it is from, for messages: `the proxy on node-a`. */
  readonly from: string;
  readonly flags: readonly string[];
  readonly text: string;
  /** The mode that really runs; absent: that of the configuration. */
  readonly mode?: string;
  /** It is that of kube-proxy. */
  readonly ofKubeProxy?: boolean;
  /** Asks the running proxy for another page of its metrics port; absent: none runs. */
  readonly page?: (path: string) => Promise<string>;
}

/** What kube-proxy does not know: Fairlead's own annotation. */
const AS_KUBE_PROXY = ["--ownership-annotation=false"];

/**
 * The configuration that a running proxy serves, Fairlead's or kube-proxy's.
 *
 * @param from what messages call the proxy
 */
export async function runningConfig(way: ProxyAccess, port: number, from: string): Promise<ProxyConfig> {
  const answer = fieldsOf(parseJSON(await okText(way, port, "/configz")));
  const { "kubeproxy.config.k8s.io": kubeProxy, "fairlead.dev": fairlead, commandLine } = answer;
  // Before Kubernetes 1.31 it has the names of Go's fields, and no kind.
  if (!isObject(kubeProxy) || stringOf(kubeProxy["kind"]) === undefined) {
    throw new CommandFailure(`${way.nameOf(port)}/configz has no KubeProxyConfiguration v1alpha1`);
  }
  // The configuration has the mode, too.
  const mode = await okText(way, port, "/proxyMode").then(
    (text) => text.trim(),
    () => "",
  );
  const userspaceOnly = fieldsOf(commandLine)["userspace-only"] === "true" ? ["--userspace-only"] : [];
  // JSON is YAML.
  const documents = [kubeProxy, ...(isObject(fairlead) ? [fairlead] : [])].map((one) => JSON.stringify(one));
  return {
    from,
    flags: isObject(fairlead) ? userspaceOnly : AS_KUBE_PROXY,
    text: documents.join("\n---\n"),
    ...(mode !== "" && { mode }),
    ofKubeProxy: !isObject(fairlead),
    page: (path) => okText(way, port, path),
  };
}

/**
 * The configuration that a node's proxy was started with: its pod's command line, and the ConfigMap that it has as the
 * file of --config.
 */
export async function podConfig({ node, spec, container }: PlacedPod, cluster: Cluster): Promise<ProxyConfig> {
  return mountedConfig(kubeProxySetup(templateOf(spec)), container.namespace, node, cluster);
}

const NAMES = ["fairlead", "kube-proxy"];

/**
 * The configuration that the cluster's only service proxy is installed with, for a reader who may not list pods.
 *
 * @param node undefined: any
 */
export async function installedConfig(node: string | undefined, cluster: Cluster): Promise<ProxyConfig> {
  const found = await Promise.all(
    NAMES.map(async (name) => unlessRefused(cluster.get(inNamespace(DAEMON_SETS, SYSTEM_NAMESPACE), name))),
  );
  const [first, second] = found.filter((one) => one !== undefined);
  if (second !== undefined) throw new CommandFailure("both kube-proxy and Fairlead are installed");
  if (first !== undefined) return mountedConfig(kubeProxySetup(first), SYSTEM_NAMESPACE, node, cluster);
  return configMapConfig({ configMap: "kube-proxy", key: "config.conf", namespace: SYSTEM_NAMESPACE }, [], cluster);
}

/** A reader may read one ConfigMap and no DaemonSet. */
async function unlessRefused<T>(asking: Promise<T>): Promise<T | undefined> {
  try {
    return await asking;
  } catch (error) {
    if (error instanceof ApiError && error.status === 403) return undefined;
    throw error;
  }
}

async function mountedConfig(
  { image, flags, config }: KubeProxySetup,
  namespace: string,
  node = "node",
  cluster: Cluster,
): Promise<ProxyConfig> {
  if (config === undefined) throw new CommandFailure("the proxy's --config is not from a ConfigMap");
  const others = flags.filter((flag) => !flag.startsWith("--config=")).map((flag) => withNode(flag, node));
  if (!isKubeProxyImage(image)) return configMapConfig({ ...config, namespace }, others, cluster);
  return {
    ...(await configMapConfig({ ...config, namespace }, [...AS_KUBE_PROXY, ...others], cluster)),
    ofKubeProxy: true,
  };
}

/** As the kubelet replaces it, from the field `spec.nodeName`. */
function withNode(flag: string, node: string): string {
  return flag.replaceAll(/\$\(\w+\)/g, node);
}

async function configMapConfig(
  { namespace, configMap, key }: { readonly namespace: string; readonly configMap: string; readonly key: string },
  flags: readonly string[],
  cluster: Cluster,
): Promise<ProxyConfig> {
  const name = `ConfigMap ${namespace}/${configMap}`;
  const found = await cluster.get(inNamespace(CONFIG_MAPS, namespace), configMap);
  if (found === undefined) throw new CommandFailure(`${name} is not there`);
  const text = stringOf(valueAt(found, "data", key));
  if (text === undefined) throw new CommandFailure(`${name} has no ${key}`);
  return { from: name, flags, text };
}

function templateOf(spec: object): object {
  return { spec: { template: { spec } } };
}
