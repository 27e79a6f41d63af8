/** Where the ConfigMap is, in each container. */
export const CONFIG_FOLDER = "/etc/fairlead";

const NODE_FLAGS = [`--config=${CONFIG_FOLDER}/config.conf`, "--hostname-override=$(NODE_NAME)"];
const ENV = [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }];
const RESOURCES = { requests: { cpu: "100m", memory: "128Mi" }, limits: { memory: "1Gi" } };
const CONFIG = { name: "config", mountPath: CONFIG_FOLDER, readOnly: true };
const LOCK = { name: "xtables-lock", mountPath: "/run/xtables.lock" };
const STATE = { name: "state", mountPath: "/var/lib/fairlead" };
const STATE_FLAG = `--state-dir=${STATE.mountPath}`;
const MODULES = { name: "lib-modules", mountPath: "/lib/modules", readOnly: true };

/** What needs more than the agent has (kernel modules, sysctls). */
export function initContainer(image: string, flags: readonly string[]) {
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

export const CAPABILITIES = {
  allowPrivilegeEscalation: false,
  readOnlyRootFilesystem: true,
  capabilities: { drop: ["ALL"], add: ["NET_ADMIN", "NET_RAW"] },
};

/** The agent. */
export function container(image: string, flags: readonly string[]) {
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
