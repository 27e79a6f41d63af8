/** What is installed: the manifests of deploy/base, which a test holds them to. */

import { createHash } from "node:crypto";
import type { ProxyMode } from "@fairlead/config";
import {
  FAIRLEAD,
  MANAGED_BY_LABEL,
  MANAGER,
  MANIFESTS_ANNOTATION,
  NAME_LABEL,
  NAMESPACE,
  OPTIONS_ANNOTATION,
  type Placement,
  placedTerms,
} from "./state.ts";

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
  readonly files: { readonly "config.conf": string; readonly "kubeconfig.conf": string };
}

/** Another one whenever what is installed changes. */
export function fingerprint(installation: Installation): string {
  const { options, flags, files } = installation;
  return shortHash([files, daemonSet({ options, flags, configMap: "", placement: "everywhere", fingerprint: "" })]);
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [field: string]: unknown };
  readonly [field: string]: unknown;
}

const LABELS = { [NAME_LABEL]: FAIRLEAD, [MANAGED_BY_LABEL]: MANAGER };

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

const CAPABILITIES = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
};

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

/** Where the ConfigMap is, in each container. */
export const CONFIG_FOLDER = "/etc/fairlead";

function shortHash(value: unknown): string {
  return createHash("sha256").update(JSON.stringify(value)).digest("hex").slice(0, 10);
}

interface DaemonSetSettings {
  readonly options: { readonly image: string };
  /** Of the agent, in addition to those that every installation has. */
  readonly flags: readonly string[];
  readonly configMap: string;
  readonly placement: Placement;
  /** What it and its ConfigMap are made of. */
  readonly fingerprint: string;
}

/** The DaemonSet of deploy/base, on the nodes that it is wanted on. */
function daemonSet({ options, flags, configMap, placement, fingerprint }: DaemonSetSettings) {
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

const NODE_FLAGS = [`--config=${CONFIG_FOLDER}/config.conf`, "--hostname-override=$(NODE_NAME)"];
const ENV = [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }];
const RESOURCES = { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } };
const CONFIG = { name: "config", mountPath: CONFIG_FOLDER, readOnly: true };
const LOCK = { name: "xtables-lock", mountPath: "/run/xtables.lock" };
const STATE = { name: "state", mountPath: "/var/lib/fairlead" };
const STATE_FLAG = `--state-dir=${STATE.mountPath}`;
const MODULES = { name: "lib-modules", mountPath: "/lib/modules", readOnly: true };

/** What needs more than the agent has (kernel modules, sysctls). */
function initContainer(image: string, flags: readonly string[]) {
  return {
    name: "init",
    image,
    imagePullPolicy: "IfNotPresent",
    args: [...NODE_FLAGS, STATE_FLAG, "--init-only", ...flags],
    env: ENV,
    resources: RESOURCES,
    securityContext: { privileged: true, readOnlyRootFilesystem: true },
    volumeMounts: [CONFIG, LOCK, MODULES, STATE],
  };
}

/** The agent. */
function container(image: string, flags: readonly string[]) {
  const httpGet = (path: string) => ({ path, port: "healthz" });
  return {
    name: "fairlead",
    image,
    imagePullPolicy: "IfNotPresent",
    args: [...NODE_FLAGS, STATE_FLAG, ...flags],
    env: ENV,
    ports: [{ name: "healthz", containerPort: 10256, hostPort: 10256, protocol: "TCP" }],
    startupProbe: { httpGet: httpGet("/livez"), periodSeconds: 5, failureThreshold: 60 },
    livenessProbe: { httpGet: httpGet("/livez"), periodSeconds: 10, timeoutSeconds: 5, failureThreshold: 6 },
    readinessProbe: { httpGet: httpGet("/healthz"), periodSeconds: 10, timeoutSeconds: 5 },
    resources: RESOURCES,
    securityContext: CAPABILITIES,
    volumeMounts: [CONFIG, STATE, { name: "run", mountPath: "/run/fairlead" }, LOCK, MODULES],
  };
}
