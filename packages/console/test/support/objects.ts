import { endpointSlice, node, type RawObject, service } from "@fairlead/testkit";

/** A small shop on two nodes: our network on 10.144.0.0/16, another one's on 10.244.0.0/16. */
export const shop: readonly RawObject[] = [
  node("node-a", { zone: "east", addresses: ["10.201.0.10"] }),
  node("node-b", { zone: "west", addresses: ["10.202.0.10"] }),
  service("web", {
    namespace: "shop",
    type: "LoadBalancer",
    clusterIPs: ["10.96.0.10"],
    externalTrafficPolicy: "Local",
    ports: [{ name: "http", port: 80, nodePort: 30_080 }],
    ingress: [{ ip: "203.0.113.9" }],
  }),
  endpointSlice("web-1", {
    namespace: "shop",
    service: "web",
    family: "IPv4",
    ports: [{ name: "http", port: 8080 }],
    endpoints: [
      { address: "10.144.1.5", nodeName: "node-a" },
      { address: "10.144.2.6", nodeName: "node-b" },
      { address: "10.144.2.7", nodeName: "node-b", ready: false },
      { address: "10.144.2.8", nodeName: "node-b", ready: false, serving: true, terminating: true },
    ],
  }),
  service("nobody", { clusterIPs: ["10.96.0.12"], ports: [{ port: 80 }] }),
  service("nginx-ovn", { clusterIPs: ["10.96.95.98"], ports: [{ port: 80 }] }),
  endpointSlice("nginx-ovn-1", {
    service: "nginx-ovn",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.244.0.5", nodeName: "node-b" }],
  }),
  service("both", { clusterIPs: ["10.96.0.13"], ports: [{ port: 80 }] }),
  endpointSlice("both-1", {
    service: "both",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [
      { address: "10.144.1.7", nodeName: "node-a" },
      { address: "10.244.0.6", nodeName: "node-b" },
    ],
  }),
  service("stray", { clusterIPs: ["10.96.0.14"], ports: [{ port: 80 }] }),
  endpointSlice("stray-1", {
    service: "stray",
    family: "IPv4",
    ports: [{ port: 80 }],
    endpoints: [{ address: "10.88.0.6", nodeName: "node-b" }],
  }),
];

/** As many services as it says, with two endpoints each. */
export function manyServices(count: number): readonly RawObject[] {
  return Array.from({ length: count }, (_, at) => {
    const name = `service-${String(at).padStart(5, "0")}`;
    const [high, low] = [at >> 8, at & 255];
    return [
      service(name, { namespace: "many", clusterIPs: [`10.97.${high}.${low}`], ports: [{ port: 80 }] }),
      endpointSlice(`${name}-1`, {
        namespace: "many",
        service: name,
        family: "IPv4",
        ports: [{ port: 8080 }],
        endpoints: [
          { address: `10.144.${high}.${low}`, nodeName: "node-a" },
          { address: `10.145.${high}.${low}`, nodeName: "node-b" },
        ],
      }),
    ];
  }).flat();
}
