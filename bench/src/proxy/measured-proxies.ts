import { kubeProxyProgram } from "@fairlead/lab/control-plane/kube-proxy-program";
import { fairlead, kubeProxy, type MeasuredProxy } from "./measured-proxy.ts";

export interface Rival {
  readonly against?: "kube-proxy";
  readonly kubeProxyVersion: string;
}

/** Fairlead, and what it is compared with. */
export async function measuredProxies(
  { against, kubeProxyVersion }: Rival,
  progress: (line: string) => void,
): Promise<readonly [MeasuredProxy, ...MeasuredProxy[]]> {
  if (against === undefined) return [fairlead()];
  return [fairlead(), kubeProxy(await kubeProxyProgram(kubeProxyVersion, progress))];
}
