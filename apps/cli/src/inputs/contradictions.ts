import { fieldsOf } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";

/** What decides about packets; how a proxy reaches its API server and logs does not. */
const DECIDES =
  /^(?:mode|clusterCIDR|detectLocal.*|nodePortAddresses|serviceProxyName|serviceNetwork|featureGates\..*|multiCNI\..*|(?:iptables|nftables)\.(?:masquerade|localhost).*|ipvs\.(?:scheduler|strictARP))$/;

/**
 * Where what a user gives differs from what the proxy has, a line each.
 *
 * @param from what messages call the proxy
 */
export function contradictions(from: string, proxy: AgentConfig, used: AgentConfig): readonly string[] {
  return Object.entries(used.provenance).flatMap(([path, name]) => {
    const [theirs, ours] = [shown(proxy, path), shown(used, path)];
    if (!DECIDES.test(path) || proxy.provenance[path] === name || theirs === ours) return [];
    return [`${from} has ${path} ${theirs}, ${optionOf(name)} says ${ours}: the latter is used`];
  });
}

/** As the command line tool calls it. */
function optionOf(name: string): string {
  return name === "--proxy-mode" ? "--mode" : name;
}

function shown({ kubeProxyConfiguration, fairleadConfiguration, mode }: AgentConfig, path: string): string {
  if (path === "mode") return mode;
  const value = at(kubeProxyConfiguration, path) ?? at(fairleadConfiguration, path);
  if (value === undefined || value === null || value === "") return "empty";
  return typeof value === "string" ? value : JSON.stringify(value);
}

function at(root: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((value, key) => fieldsOf(value)[key], root);
}
