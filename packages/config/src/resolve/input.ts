import type { FairleadInput } from "../table/fairlead.ts";
import type { KubeProxyInput } from "../table/kube-proxy.ts";

/** What the configuration is made from: documents that have been read, from flags or from a file. */
export interface ConfigInput {
  /** kube-proxy's defaults of a file and of its flags differ in places: a zero in a file mostly means the default. */
  readonly origin: "file" | "flags";
  readonly kubeProxy: KubeProxyInput;
  readonly fairlead: FairleadInput;
  /** Flags alongside the documents. */
  readonly options: CommandOptions;
}

export interface CommandOptions {
  readonly master?: string;
  readonly allowExecCredentials: boolean;
  readonly manifests?: string;
  readonly stateDir?: string;
  readonly userspaceOnly: boolean;
  readonly healthzPort?: number;
  readonly metricsPort?: number;
}

/** Zero in a file is the default for most periods (v1alpha1 cannot tell zero from absent); as a flag it is zero. */
export function periodOf(input: ConfigInput, given: number | undefined, fallback: number): number {
  return given === undefined || (given === 0 && input.origin === "file") ? fallback : given;
}
