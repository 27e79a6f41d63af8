/** kube-proxy's objects as kubeadm writes them, as far as they are looked at. */
export const KUBE_PROXY = {
  metadata: { name: "kube-proxy", namespace: "kube-system", uid: "kp", generation: 1 },
  spec: {
    updateStrategy: { type: "RollingUpdate" },
    template: {
      spec: {
        nodeSelector: { "kubernetes.io/os": "linux" },
        containers: [
          {
            name: "kube-proxy",
            image: "registry.k8s.io/kube-proxy:v1.36.3",
            command: [
              "/usr/local/bin/kube-proxy",
              "--config=/var/lib/kube-proxy/config.conf",
              "--hostname-override=$(NODE_NAME)",
            ],
            volumeMounts: [{ name: "kube-proxy", mountPath: "/var/lib/kube-proxy" }],
          },
        ],
        volumes: [{ name: "kube-proxy", configMap: { name: "kube-proxy" } }],
      },
    },
  },
  status: { observedGeneration: 1 },
};

export const CONFIG_CONF = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
clientConnection:
  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf # of the account
clusterCIDR: 10.144.0.0/16
mode: nftables
iptables:
  masqueradeBit: null
winkernel:
  sourceVip: ""
`;

export const KUBECONFIG_CONF = `apiVersion: v1
kind: Config
clusters:
- cluster:
    certificate-authority: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt
    server: https://cp.example:6443
  name: default
`;

export const CONFIG_MAP = { data: { "config.conf": CONFIG_CONF, "kubeconfig.conf": KUBECONFIG_CONF } };

export const API_SERVICE = { spec: { clusterIP: "10.96.0.1", clusterIPs: ["10.96.0.1", "fd00::1"] } };

export function kubeProxyWith(podSpec: object, flags: readonly string[] = []): typeof KUBE_PROXY {
  const { template } = KUBE_PROXY.spec;
  const [container] = template.spec.containers;
  const containers = [
    { ...container, command: [...(container?.command ?? []), ...flags] },
  ] as typeof template.spec.containers;
  return {
    ...KUBE_PROXY,
    spec: { ...KUBE_PROXY.spec, template: { spec: { ...template.spec, containers, ...podSpec } } },
  };
}
