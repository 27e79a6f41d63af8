import { setTimeout as sleep } from "node:timers/promises";
import { fieldsOf, itemsOf, stringOf } from "@fairlead/base";
import { DNS_PORT, type DnsRecord, type Pod } from "@fairlead/lab/provider/cluster";
import { able } from "../needs.ts";
import type { Scene } from "../scene.ts";
import { createService } from "../service.ts";

const NAMESPACE = "kube-system";
const LABELS = { "k8s-app": "kube-dns" };
const PAUSE_MS = 100;
const PORTS = [
  { name: "dns", port: 53, targetPort: DNS_PORT, protocol: "UDP" },
  { name: "dns-tcp", port: 53, targetPort: DNS_PORT, protocol: "TCP" },
];

/**
 * A cluster DNS as far as it is asked: a server behind kube-system/kube-dns that knows one headless service, whose
 * endpoints it follows.
 *
 * @returns its ClusterIP
 */
export async function openClusterDNS(scene: Scene, service: { readonly namespace: string; readonly name: string }) {
  const { cluster, nodes, family, network, later } = scene;
  const wanted = { namespace: NAMESPACE, network: network.name, node: nodes[1], labels: LABELS };
  const pod = await cluster.startPod(wanted);
  later(() => pod.remove());
  const spec = { selector: LABELS, ports: PORTS };
  const where = { name: "kube-dns", namespace: NAMESPACE, annotations: {} };
  const { clusterIP, remove } = await createService(cluster.api, { ...where, family, spec });
  later(remove);
  const stop = new AbortController();
  const following = follow(scene, service, pod, stop.signal);
  later(async () => {
    stop.abort();
    await following;
  });
  return clusterIP;
}

async function follow(
  { cluster: { api } }: Scene,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  pod: Pod,
  signal: AbortSignal,
): Promise<void> {
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name%3D${name}`;
  let served = "";
  while (!signal.aborted) {
    // The API server may be away.
    const list = await api.get(path).catch(() => undefined);
    const records = list === undefined ? [] : recordsOf(list, `${name}.${namespace}.svc.cluster.local`);
    const text = JSON.stringify(records);
    if (list !== undefined && text !== served) {
      await able(pod.serveDns)(records);
      served = text;
    }
    await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
  }
}

function recordsOf(list: unknown, name: string): readonly DnsRecord[] {
  return itemsOf(fieldsOf(list)["items"]).flatMap((slice) => {
    const { addressType, endpoints } = fieldsOf(slice);
    const ready = itemsOf(endpoints).filter((one) => fieldsOf(fieldsOf(one)["conditions"])["ready"] !== false);
    const addresses = ready.flatMap((one) =>
      itemsOf(fieldsOf(one)["addresses"]).flatMap((text) => stringOf(text) ?? []),
    );
    const type = addressType === "IPv6" ? "AAAA" : "A";
    return addresses.sort().map((value): DnsRecord => ({ name, type, value }));
  });
}
