import type { AgentConfig } from "@fairlead/config";

type Documents = Pick<AgentConfig, "kubeProxyConfiguration" | "fairleadConfiguration" | "commandLine">;

/** The configuration as kube-proxy serves it, by upstream's key, and alongside that what only Fairlead has. */
export function configz({ kubeProxyConfiguration, fairleadConfiguration, commandLine }: Documents): object {
  return {
    "kubeproxy.config.k8s.io": kubeProxyConfiguration,
    "fairlead.dev": fairleadConfiguration,
    commandLine,
  };
}
