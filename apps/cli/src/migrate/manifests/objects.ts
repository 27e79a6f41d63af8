import { createHash } from "node:crypto";
import type { ProxyMode } from "@fairlead/config";
import { FAIRLEAD, MANAGED_BY_LABEL, MANAGER, NAME_LABEL, NAMESPACE } from "../cluster/names.ts";
import type { Placement } from "../plan/state.ts";
import { CAPABILITIES } from "./containers.ts";
import { daemonSet } from "./daemon-set.ts";

/** What was asked for, which the DaemonSet remembers for the next run. */
export interface InstallationOptions {
  readonly image: string;
  readonly excludeClusterCIDRs: readonly string[];
  /** In place of the kubeconfig's. */
  readonly apiServer: string | undefined;
  /** In place of the one of kube-proxy's configuration; absent: that one. */
  readonly mode?: ProxyMode;
  /** `NAMESPACE/NAME` of kube-proxy's DaemonSet; absent: `KUBE_PROXY_DAEMON_SET`. */
  readonly kubeProxy?: string;
}

/** What each cluster has of its own. */
export interface Installation {
  readonly options: InstallationOptions;
  /** Of the agent, in addition to --config, --hostname-override and --state-dir. */
  readonly flags: readonly string[];
  /** The files of its ConfigMap. */
  readonly files: { readonly "config.conf": string; readonly "kubeconfig.conf": string };
}

/** An object of the API. */
interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

const LABELS = { [NAME_LABEL]: FAIRLEAD, [MANAGED_BY_LABEL]: MANAGER };

/** Another one whenever what is installed changes. */
export function fingerprint(installation: Installation): string {
  const { options, flags, files } = installation;
  return shortHash([files, daemonSet({ options, flags, configMap: "", placement: "everywhere", fingerprint: "" })]);
}

/**
 * Fairlead's objects, as deploy/base has them. The ConfigMap's name ends with a hash of what is in it, so that a change
 * is a new pod on one node after the other.
 */
export function fairleadObjects(installation: Installation, placement: Placement): readonly Manifest[] {
  const { options, flags, files } = installation;
  const name = `${FAIRLEAD}-${shortHash(files)}`;
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: FAIRLEAD, namespace: NAMESPACE, labels: LABELS } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "fairlead:node-proxier", labels: LABELS },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
      subjects: [{ kind: "ServiceAccount", name: FAIRLEAD, namespace: NAMESPACE }],
    },
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name, namespace: NAMESPACE, labels: LABELS },
      immutable: true,
      data: files,
    },
    daemonSet({ options, flags, configMap: name, placement, fingerprint: fingerprint(installation) }),
  ];
}

/** Label of pods that look at a node before and after its change. */
export const CHECK_LABEL = "fairlead.dev/check";

/** A pod may be forgotten when a migration is killed: it ends by itself. */
const CHECK_SECONDS = 900;

/** A pod of Fairlead's image that does nothing on a node, so that programs can be started in it. */
export function checkPod(node: string, image: string) {
  const name = `fairlead-check-${shortHash(node)}`;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: NAMESPACE, labels: { [CHECK_LABEL]: "migrate" } },
    spec: {
      nodeName: node,
      hostNetwork: true,
      restartPolicy: "Never",
      activeDeadlineSeconds: CHECK_SECONDS,
      terminationGracePeriodSeconds: 0,
      automountServiceAccountToken: false,
      tolerations: [{ operator: "Exists" }],
      securityContext: { seccompProfile: { type: "RuntimeDefault" } },
      containers: [
        {
          name: "check",
          image,
          imagePullPolicy: "IfNotPresent",
          command: ["node", "--eval", `setTimeout(() => {}, ${CHECK_SECONDS * 1000})`],
          securityContext: CAPABILITIES,
          volumeMounts: [{ name: "xtables-lock", mountPath: "/run/xtables.lock" }],
        },
      ],
      volumes: [{ name: "xtables-lock", hostPath: { path: "/run/xtables.lock", type: "FileOrCreate" } }],
    },
  };
}

function shortHash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 10);
}
