import {
  clusterObjects,
  endpointSlice,
  NETWORKS,
  nginxCalico,
  type RawObject,
  service,
  type Workload,
  webA1,
  webB1,
  workload,
} from "@fairlead/testkit";

/** Served in both families, at every kind of frontend. */
export const web: Workload = workload(11, {
  endpoints: [webA1, webB1],
  families: ["IPv4", "IPv6"],
  loadBalancer: "VIP",
  sourceRanges: [NETWORKS.outside.IPv4, NETWORKS.outside.IPv6],
});

/** Refused in both families. */
export const nobody: Workload = workload(12, { endpoints: [], families: ["IPv4", "IPv6"] });

/** Comes and goes. */
export const late: Workload = workload(13, { endpoints: [webA1] });

export const NGINX_CALICO_IP = "10.96.67.75";
export const NGINX_OVN_IP = "10.96.95.98";

/** The founding case: one service of each network. */
const founding: readonly RawObject[] = [
  ...one("nginx-calico", NGINX_CALICO_IP, nginxCalico.addresses.IPv4),
  ...one("nginx-ovn", NGINX_OVN_IP, "10.244.1.5"),
];

/** What the agents of the fault tests serve. */
export const objects: readonly RawObject[] = [...clusterObjects, ...web.objects, ...nobody.objects, ...founding];

/** What listens in a lab with these objects. */
export const labPorts = {
  podPorts: { tcp: [80, 8080], udp: [] },
  landingPorts: { tcp: [80, 8080, web.nodePort], udp: [] },
};

function one(name: string, clusterIP: string, address: string): readonly RawObject[] {
  return [
    service(name, { clusterIPs: [clusterIP], ports: [{ port: 80 }] }),
    endpointSlice(`${name}-1`, {
      service: name,
      family: "IPv4",
      ports: [{ port: 80 }],
      endpoints: [{ address, nodeName: "node-b" }],
    }),
  ];
}
