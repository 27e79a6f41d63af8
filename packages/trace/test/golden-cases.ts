import type { Packet } from "../src/index.ts";
import { ownPacket, packet } from "./rule-set.ts";

const POD_HERE = { source: "10.144.1.5", inInterface: "cali1" } as const;
export const OTHER_POD_HERE = { source: "10.144.1.9", inInterface: "cali2" } as const;
export const OUTSIDE = { source: "198.51.100.7", inInterface: "eth0" } as const;
export const STRANGER = { source: "198.51.101.7", inInterface: "eth0" } as const;

/** What the real kube-proxy's rules do to a packet, by the meaning of the scenario and not by its rules. */
export const ipv4: [scenario: string, what: string, packet: Packet, expected: string[]][] = [
  ["01-clusterip", "pod → ClusterIP", packet({ ...POD_HERE, destination: "10.96.67.75" }), ["→ 10.144.154.71:80"]],
  ["01-clusterip", "node → ClusterIP", ownPacket({ destination: "10.96.67.75" }), ["→ 10.144.154.71:80 masq"]],
  [
    "01-clusterip",
    "outside → ClusterIP",
    packet({ ...OUTSIDE, destination: "10.96.67.75" }),
    ["→ 10.144.154.71:80 masq"],
  ],
  [
    "01-clusterip",
    "another port",
    packet({ ...POD_HERE, destination: "10.96.67.75", dport: 81 }),
    ["→ 10.96.67.75:81"],
  ],
  ["01-clusterip", "another address", packet({ ...POD_HERE, destination: "10.96.67.76" }), ["→ 10.96.67.76:80"]],
  [
    "02-dns-tcp-udp",
    "DNS over UDP",
    packet({ ...OTHER_POD_HERE, destination: "10.96.0.10", dport: 53, protocol: "udp" }),
    ["→ 10.144.1.5:53 50.0%", "→ 172.30.23.2:53 50.0%"],
  ],
  [
    "02-dns-tcp-udp",
    "DNS over TCP",
    packet({ ...OTHER_POD_HERE, destination: "10.96.0.10", dport: 53 }),
    ["→ 10.144.1.5:53 50.0%", "→ 172.30.23.2:53 50.0%"],
  ],
  [
    "03-three-endpoints",
    "an endpoint calls its own service: hairpin",
    packet({ ...POD_HERE, destination: "10.96.1.3" }),
    ["→ 10.144.1.5:8080 masq 33.3%", "→ 10.144.2.6:8080 33.3%", "→ 10.144.2.7:8080 33.3%"],
  ],
  ["04-no-endpoints", "pod → ClusterIP", packet({ ...POD_HERE, destination: "10.96.1.4" }), ["reject 10.96.1.4:80"]],
  ["04-no-endpoints", "node → ClusterIP", ownPacket({ destination: "10.96.1.4" }), ["reject 10.96.1.4:80"]],
  [
    "04-no-endpoints",
    "outside → NodePort",
    packet({ ...OUTSIDE, destination: "10.201.0.10", dport: 30104 }),
    ["reject 10.201.0.10:30104"],
  ],
  [
    "05-nodeport",
    "outside → NodePort",
    packet({ ...OUTSIDE, destination: "10.201.0.10", dport: 30105 }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "05-nodeport",
    "node → localhost",
    ownPacket({ source: "127.0.0.1", destination: "127.0.0.1", dport: 30105 }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "05-nodeport",
    "outside → another host's port",
    packet({ ...OUTSIDE, destination: "10.201.0.11", dport: 30105 }),
    ["→ 10.201.0.11:30105"],
  ],
  [
    "06-nodeport-local",
    "outside → NodePort under Local",
    packet({ ...OUTSIDE, destination: "10.201.0.10", dport: 30106 }),
    ["→ 10.144.1.5:8080"],
  ],
  [
    "06-nodeport-local",
    "pod → NodePort under Local: the short cut",
    packet({ ...OTHER_POD_HERE, destination: "10.201.0.10", dport: 30106 }),
    ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"],
  ],
  [
    "06-nodeport-local",
    "node → its own NodePort under Local",
    ownPacket({ destination: "10.201.0.10", dport: 30106 }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "07-nodeport-local-none-here",
    "outside → NodePort under Local without an endpoint here",
    packet({ ...OUTSIDE, destination: "10.201.0.10", dport: 30107 }),
    ["drop 10.201.0.10:30107"],
  ],
  [
    "07-nodeport-local-none-here",
    "pod → the same",
    packet({ ...OTHER_POD_HERE, destination: "10.201.0.10", dport: 30107 }),
    ["→ 10.144.2.6:8080"],
  ],
  [
    "08-external-ip",
    "outside → external IP",
    packet({ ...OUTSIDE, destination: "192.0.2.8" }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "09-loadbalancer",
    "outside → load balancer",
    packet({ ...OUTSIDE, destination: "203.0.113.9" }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "10-lb-source-ranges",
    "an allowed source → load balancer",
    packet({ ...OUTSIDE, destination: "203.0.113.10" }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "10-lb-source-ranges",
    "another source",
    packet({ ...STRANGER, destination: "203.0.113.10" }),
    ["drop 203.0.113.10:80"],
  ],
  [
    "10-lb-source-ranges",
    "another source → NodePort",
    packet({ ...STRANGER, destination: "10.201.0.10", dport: 30110 }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "10-lb-source-ranges",
    "another source → ClusterIP",
    packet({ ...STRANGER, destination: "10.96.1.10" }),
    ["→ 10.144.1.5:8080 masq 50.0%", "→ 10.144.2.6:8080 masq 50.0%"],
  ],
  [
    "11-lb-local-healthcheck",
    "outside → load balancer under Local",
    packet({ ...OUTSIDE, destination: "203.0.113.11" }),
    ["→ 10.144.1.5:8080"],
  ],
  [
    "11-lb-local-healthcheck",
    "the health check's own port",
    packet({ ...OUTSIDE, destination: "10.201.0.10", dport: 31111 }),
    ["→ 10.201.0.10:31111"],
  ],
  [
    "12-affinity",
    "the first packet of a client",
    packet({ ...OTHER_POD_HERE, destination: "10.96.1.12" }),
    ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"],
  ],
  [
    "13-internal-local",
    "pod → ClusterIP under internal Local",
    packet({ ...OTHER_POD_HERE, destination: "10.96.1.13" }),
    ["→ 10.144.1.5:8080"],
  ],
  [
    "17-sctp",
    "SCTP",
    packet({ ...OTHER_POD_HERE, destination: "10.96.1.17", protocol: "sctp" }),
    ["→ 10.144.1.5:8080 50.0%", "→ 10.144.2.6:8080 50.0%"],
  ],
  ["17-sctp", "TCP to the SCTP port", packet({ ...OTHER_POD_HERE, destination: "10.96.1.17" }), ["→ 10.96.1.17:80"]],
  [
    "19-other-proxy-name",
    "a service of another proxy",
    packet({ ...POD_HERE, destination: "10.96.1.19" }),
    ["→ 10.96.1.19:80"],
  ],
];

const POD6 = { family: "IPv6", source: "fd00:144::9", inInterface: "cali2" } as const;
const OUTSIDE6 = { family: "IPv6", source: "fd00:198:51::7", inInterface: "eth0" } as const;
const STRANGER6 = { family: "IPv6", source: "fd00:198:52::7", inInterface: "eth0" } as const;

export const ipv6: typeof ipv4 = [
  [
    "25-dual-clusterip",
    "pod → ClusterIP",
    packet({ ...POD6, destination: "fd00:10:96::25" }),
    ["→ [fd00:144:1::5]:8080 50.0%", "→ [fd00:144:2::6]:8080 50.0%"],
  ],
  [
    "26-dual-nodeport",
    "outside → NodePort",
    packet({ ...OUTSIDE6, destination: "fd00:201::10", dport: 30126 }),
    ["→ [fd00:144:1::5]:8080 masq"],
  ],
  [
    "26-dual-nodeport",
    "node → localhost: no node port there",
    ownPacket({ family: "IPv6", source: "::1", destination: "::1", dport: 30126 }),
    ["→ [::1]:30126"],
  ],
  [
    "27-ipv6-lb-source-ranges",
    "an allowed source → load balancer",
    packet({ ...OUTSIDE6, destination: "fd00:203::5" }),
    ["→ [fd00:144:1::5]:8080 masq 50.0%", "→ [fd00:144:2::6]:8080 masq 50.0%"],
  ],
  [
    "27-ipv6-lb-source-ranges",
    "another source",
    packet({ ...STRANGER6, destination: "fd00:203::5" }),
    ["drop [fd00:203::5]:80"],
  ],
  [
    "30-ipv6-no-endpoints",
    "pod → ClusterIP",
    packet({ ...POD6, destination: "fd00:10:96::30", dport: 53, protocol: "udp" }),
    ["reject [fd00:10:96::30]:53"],
  ],
];
