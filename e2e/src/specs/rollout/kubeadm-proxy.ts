import type { ApiClient, ApiObject } from "@fairlead/lab/control-plane/api-client";
import { objectPath } from "@fairlead/lab/control-plane/api-client";

const NAME = "kube-proxy";
const FOLDER = "/var/lib/kube-proxy";
const ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";
const own = { name: NAME, namespace: "kube-system" };
const labels = { "k8s-app": NAME };

interface Setup {
  readonly server: string;
  readonly mode: string;
  readonly clusterCIDR: string;
}

/** JSON is YAML. What is the machine's own stays as it is: connection tracking's limits. */
function configMap({ server, mode, clusterCIDR }: Setup): ApiObject {
  const config = {
    apiVersion: "kubeproxy.config.k8s.io/v1alpha1",
    kind: "KubeProxyConfiguration",
    clientConnection: { kubeconfig: `${FOLDER}/kubeconfig.conf` },
    mode,
    clusterCIDR,
    conntrack: { maxPerCore: 0, min: 0 },
  };
  const kubeconfig = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster: { server, "certificate-authority": `${ACCOUNT}/ca.crt` } }],
    users: [{ name: "default", user: { tokenFile: `${ACCOUNT}/token` } }],
    contexts: [{ name: "default", context: { cluster: "default", user: "default" } }],
    "current-context": "default",
  };
  const data = { "config.conf": JSON.stringify(config), "kubeconfig.conf": JSON.stringify(kubeconfig) };
  return { apiVersion: "v1", kind: "ConfigMap", metadata: own, data };
}

const daemonSet: ApiObject = {
  apiVersion: "apps/v1",
  kind: "DaemonSet",
  metadata: own,
  spec: {
    selector: { matchLabels: labels },
    updateStrategy: { type: "RollingUpdate" },
    template: {
      metadata: { labels },
      spec: {
        serviceAccountName: NAME,
        hostNetwork: true,
        nodeSelector: { "kubernetes.io/os": "linux" },
        tolerations: [{ operator: "Exists" }],
        containers: [
          {
            name: NAME,
            image: "registry.k8s.io/kube-proxy:v1.37.1",
            command: [
              "/usr/local/bin/kube-proxy",
              `--config=${FOLDER}/config.conf`,
              "--hostname-override=$(NODE_NAME)",
            ],
            env: [{ name: "NODE_NAME", valueFrom: { fieldRef: { fieldPath: "spec.nodeName" } } }],
            volumeMounts: [{ name: NAME, mountPath: FOLDER }],
          },
        ],
        volumes: [{ name: NAME, configMap: { name: NAME } }],
      },
    },
  },
};

/** kube-proxy's objects as kubeadm has them. */
export async function addKubeadmProxy(
  api: ApiClient,
  later: (undo: () => Promise<void>) => void,
  setup: Setup,
): Promise<void> {
  const account: ApiObject = { apiVersion: "v1", kind: "ServiceAccount", metadata: own };
  const binding: ApiObject = {
    apiVersion: "rbac.authorization.k8s.io/v1",
    kind: "ClusterRoleBinding",
    metadata: { name: "kubeadm:node-proxier" },
    roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "system:node-proxier" },
    subjects: [{ kind: "ServiceAccount", ...own }],
  };
  for (const object of [account, binding, configMap(setup), daemonSet]) {
    await api.create(object);
    later(() => api.delete(objectPath(object)));
  }
}
