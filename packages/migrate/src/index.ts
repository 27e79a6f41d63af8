export {
  FAIRLEAD,
  KUBE_PROXY_DAEMON_SET,
  MANAGED_BY_LABEL,
  MANAGER,
  NAMESPACE,
  PROCESS_ANNOTATION,
} from "./cluster/names.ts";
export { placementOf, placementPatch } from "./cluster/placement.ts";
export {
  type ClusterObjects,
  isManaged,
  migrationState,
  rememberedOptions,
  type WantedFairlead,
} from "./cluster/state.ts";
export { HeldByAnother, type HoldOptions, whileHolding } from "./holder/hold.ts";
export type { HeldBy, HolderPort } from "./holder/port.ts";
export {
  CHECK_LABEL,
  checkPod,
  fairleadObjects,
  fingerprint,
  type Installation,
  type InstallationOptions,
} from "./manifests/objects.ts";
export { nextStep, type Session, type Step } from "./plan/next-step.ts";
export {
  type InstalledFairlead,
  type MigrationState,
  type NodeState,
  type Placement,
  type PodState,
  PROBLEM_ANNOTATION,
  PROVEN_ANNOTATION,
  PROXY_LABEL,
  type ProxyName,
  provenText,
} from "./plan/state.ts";
export { type MigrateOptions, migrate, type Outcome, type Patience } from "./run/migrate.ts";
export type { MigrationPort, Verified } from "./run/port.ts";
export type { SurveyFinding } from "./survey/finding.ts";
export { isKubeProxy, type KubeProxySetup, kubeProxySetup } from "./survey/kube-proxy.ts";
export { networkResources } from "./survey/networks.ts";
export { type Survey, type SurveyObjects, type SurveyOptions, survey } from "./survey/survey.ts";
