/** Feature gates: those that mean something here, and those that Kubernetes has. */

import kubernetes from "../kubernetes.json" with { type: "json" };
import type { Report } from "../report.ts";
import type { Features } from "../types.ts";
import type { ConfigInput } from "./input.ts";

/** Stages by which AllAlpha and AllBeta set those gates that are not given. */
type GateStage = "alpha" | "beta" | "stable" | "deprecated";

interface Gate {
  readonly stage: GateStage;
  readonly byDefault: boolean;
}

const on = (stage: GateStage): Gate => ({ stage, byDefault: true });
const off = (stage: GateStage): Gate => ({ stage, byDefault: false });

/**
 * Gates of kube-proxy that mean something here (pkg/features/kube_features.go, logs/api/v1/kube_features.go,
 * client-go).
 */
export const KNOWN = {
  AllowServiceExternalIPs: on("stable"),
  ComponentFlagz: on("beta"),
  ComponentStatusz: on("beta"),
  KubeProxyIPVS: on("deprecated"),
  KubeProxyNFTablesLocalhostNodePorts: off("alpha"),
  LoggingAlphaOptions: off("alpha"),
  LoggingBetaOptions: on("beta"),
  PreferSameTrafficDistribution: on("stable"),
  WatchListClient: on("beta"),
  WinDSR: on("stable"),
  WinOverlay: on("stable"),
} as const satisfies Readonly<Record<string, Gate>>;

type GateName = keyof typeof KNOWN;

/** Whether a gate is on: as given, else as AllAlpha or AllBeta say for its stage, else by default. */
export function isGateOn({ kubeProxy: { featureGates = {} } }: ConfigInput, name: GateName): boolean {
  const { stage, byDefault } = KNOWN[name];
  const { AllAlpha: alpha, AllBeta: beta } = featureGates;
  const ofStage = { alpha, beta, stable: undefined, deprecated: undefined }[stage];
  return featureGates[name] ?? ofStage ?? byDefault;
}

/**
 * The feature gates that kube-proxy registers, those of all components among them: clusters often give one list to each
 * component. `pnpm kubernetes` records them.
 */
const KUBERNETES_GATES: ReadonlySet<string> = new Set(kubernetes.gates);

/** What gates give and take. Gates that Kubernetes does not have are reported: one of them may be a misspelling. */
export function resolveFeatures(input: ConfigInput, report: Report): Features {
  const given = Object.keys(input.kubeProxy.featureGates ?? {});
  const unknown = given.filter((gate) => !Object.hasOwn(KNOWN, gate) && !KUBERNETES_GATES.has(gate));
  if (unknown.length > 0) report.warn(`${report.name("featureGates")}: unknown gates, ignored: ${unknown.join(", ")}`);
  return {
    externalIPs: isGateOn(input, "AllowServiceExternalIPs"),
    nodeHints: isGateOn(input, "PreferSameTrafficDistribution"),
    watchList: isGateOn(input, "WatchListClient"),
    statusz: isGateOn(input, "ComponentStatusz"),
    flagz: isGateOn(input, "ComponentFlagz"),
    nftLocalhostNodePorts: isGateOn(input, "KubeProxyNFTablesLocalhostNodePorts"),
  };
}
