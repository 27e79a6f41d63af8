import { goldenScenario } from "@fairlead/testkit";
import { collectionOf } from "@fairlead/testkit/api-server";
import { addresses } from "./addresses.ts";
import { MigratedCluster } from "./migrated-cluster.ts";

export const NODE_NAMES = ["node-a", "node-b", "node-c"];

const configConf = [
  "apiVersion: kubeproxy.config.k8s.io/v1alpha1",
  "kind: KubeProxyConfiguration",
  "clientConnection:",
  "  kubeconfig: /var/lib/kube-proxy/kubeconfig.conf",
  "clusterCIDR: 10.144.0.0/16",
  "",
].join("\n");

const STARTED: MigratedCluster[] = [];

/** Stops those that a test has started. */
export async function stopClusters(): Promise<void> {
  await Promise.all(STARTED.splice(0).map((cluster) => cluster.stop()));
}

export async function emptyCluster(): Promise<MigratedCluster> {
  const cluster = await new MigratedCluster().start();
  STARTED.push(cluster);
  return cluster;
}

/** As kubeadm has it. */
export async function kubeadmCluster(
  names: readonly string[] = NODE_NAMES,
  kubeProxy: object = { name: "kube-proxy" },
) {
  const cluster = await emptyCluster();
  const labels = { "k8s-app": "kube-proxy" };
  const volumeMounts = [{ name: "kube-proxy", mountPath: "/var/lib/kube-proxy" }];
  const command = ["kube-proxy", "--config=/var/lib/kube-proxy/config.conf", "--hostname-override=$(NODE_NAME)"];
  const spec = {
    containers: [{ name: "kube-proxy", image: "kube-proxy:v1.36.3", command, volumeMounts }],
    volumes: [{ name: "kube-proxy", configMap: { name: "kube-proxy" } }],
  };
  cluster.add({
    kind: "DaemonSet",
    metadata: kubeProxy,
    spec: { selector: { matchLabels: labels }, template: { spec } },
  });
  const kubeconfig = "clusters:\n- cluster: {server: 'https://192.0.2.1:6443'}\n  name: default\n";
  const data = { "config.conf": configConf, "kubeconfig.conf": kubeconfig };
  const { namespace = "kube-system" } = kubeProxy as { readonly namespace?: string };
  cluster.add({ kind: "ConfigMap", metadata: { name: "kube-proxy", namespace }, data });
  cluster.add(kubernetesService("10.96.0.1"));
  for (const name of names) {
    const status = { conditions: [{ type: "Ready", status: "True" }] };
    cluster.add({ kind: "Node", metadata: { name, labels: { "kubernetes.io/os": "linux" } }, status });
  }
  return cluster;
}

export function kubernetesService(clusterIP: string) {
  const spec = { clusterIP, ports: [{ name: "https", port: 443, protocol: "TCP" }] };
  return { kind: "Service", metadata: { name: "kubernetes", namespace: "default" }, spec };
}

export const scenario = goldenScenario("09-loadbalancer");

/** A cluster with the objects whose rules the scenario has. */
export async function scenarioCluster(names: readonly string[]): Promise<MigratedCluster> {
  const cluster = await kubeadmCluster(names);
  for (const object of scenario.objects) cluster.api.store.put(collectionOf(object), object);
  cluster.programs = () => programs(scenario.iptables);
  return cluster;
}

/** Of a host where nothing is programmed for IPv6. */
export const programs = (rules: string) => ({
  "iptables-nft-save": rules,
  "iptables-nft-save -t mangle": "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n",
  "ip6tables-nft-save": "",
  "iptables --version": "iptables v1.8.9 (nf_tables)\n",
  "ip -json address": addresses,
  ip: "[]",
});
