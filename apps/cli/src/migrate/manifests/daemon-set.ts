import {
  FAIRLEAD,
  MANAGED_BY_LABEL,
  MANAGER,
  MANIFESTS_ANNOTATION,
  NAME_LABEL,
  NAMESPACE,
  OPTIONS_ANNOTATION,
} from "../cluster/names.ts";
import { placedTerms } from "../cluster/placement.ts";
import type { Placement } from "../plan/state.ts";
import { container, initContainer } from "./containers.ts";

export interface DaemonSetSettings {
  readonly options: { readonly image: string };
  /** Of the agent, in addition to those that every installation has. */
  readonly flags: readonly string[];
  readonly configMap: string;
  readonly placement: Placement;
  /** What it and its ConfigMap are made of. */
  readonly fingerprint: string;
}

/** The DaemonSet of deploy/base, on the nodes that it is wanted on. */
export function daemonSet({ options, flags, configMap, placement, fingerprint }: DaemonSetSettings) {
  const labels = { [NAME_LABEL]: FAIRLEAD };
  const nodeSelectorTerms = placedTerms("fairlead", undefined, placement);
  const affinity =
    nodeSelectorTerms.length === 0
      ? {}
      : { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } } };
  return {
    apiVersion: "apps/v1",
    kind: "DaemonSet",
    metadata: {
      name: FAIRLEAD,
      namespace: NAMESPACE,
      labels: { ...labels, [MANAGED_BY_LABEL]: MANAGER },
      annotations: { [MANIFESTS_ANNOTATION]: fingerprint, [OPTIONS_ANNOTATION]: JSON.stringify(options) },
    },
    spec: {
      selector: { matchLabels: labels },
      updateStrategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 1 } },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: FAIRLEAD,
          hostNetwork: true,
          priorityClassName: "system-node-critical",
          terminationGracePeriodSeconds: 10,
          nodeSelector: { "kubernetes.io/os": "linux" },
          ...affinity,
          tolerations: [{ operator: "Exists" }],
          securityContext: { seccompProfile: { type: "RuntimeDefault" } },
          initContainers: [initContainer(options.image, flags)],
          containers: [container(options.image, flags)],
          volumes: volumes(configMap),
        },
      },
    },
  };
}

function volumes(configMap: string) {
  return [
    { name: "config", configMap: { name: configMap } },
    { name: "state", hostPath: { path: "/var/lib/fairlead", type: "DirectoryOrCreate" } },
    { name: "run", hostPath: { path: "/run/fairlead", type: "DirectoryOrCreate" } },
    { name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } },
    { name: "lib-modules", hostPath: { path: "/lib/modules" } },
  ];
}
