import { fieldsOf, isObject, parseJSON, stringOf } from "@fairlead/base";
import { CommandFailure } from "../frame/errors.ts";
import { okText, type ProxyAccess } from "./agent-endpoint.ts";

/** A proxy's configuration, in the form of a command line and the file that it names. */
export interface ProxyConfig {
  /** Where it is from, for messages: `the proxy on node-a`. */
  readonly from: string;
  readonly flags: readonly string[];
  /** The file of --config. */
  readonly text: string;
  /** The mode that really runs; absent: that of the configuration. */
  readonly mode?: string;
}

/** What kube-proxy does not know: Fairlead's own annotation. */
const AS_KUBE_PROXY = ["--ownership-annotation=false"];

/**
 * The configuration that a running proxy serves, Fairlead's or kube-proxy's.
 *
 * @param from what messages call the proxy
 * @throws CommandFailure when it does not serve it, or not in a form that this version knows
 */
export async function runningConfig(way: ProxyAccess, port: number, from: string): Promise<ProxyConfig> {
  const answer = fieldsOf(parseJSON(await okText(way, port, "/configz")));
  const { "kubeproxy.config.k8s.io": kubeProxy, "fairlead.dev": fairlead, commandLine } = answer;
  // Before Kubernetes 1.31 it has the names of Go's fields, and no kind.
  if (!isObject(kubeProxy) || stringOf(kubeProxy["kind"]) === undefined) {
    throw new CommandFailure(`${way.nameOf(port)}/configz has no KubeProxyConfiguration v1alpha1`);
  }
  const mode = (await okText(way, port, "/proxyMode")).trim();
  const userspaceOnly = fieldsOf(commandLine)["userspace-only"] === "true" ? ["--userspace-only"] : [];
  // JSON is YAML.
  const documents = [kubeProxy, ...(isObject(fairlead) ? [fairlead] : [])].map((one) => JSON.stringify(one));
  return {
    from,
    flags: isObject(fairlead) ? userspaceOnly : AS_KUBE_PROXY,
    text: documents.join("\n---\n"),
    ...(mode !== "" && { mode }),
  };
}

/** Undefined: it is not JSON. */
