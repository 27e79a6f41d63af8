import { apiServer, clientA, type Host, NODE_A, outside, webA1, webB1 } from "@fairlead/testkit";

export const VIP = "10.96.7.7";

export interface MeaningCase {
  readonly name: string;
  readonly from: Host;
  readonly port?: number;
  /** Lines for `ipvsadm --restore`. */
  readonly servers: readonly string[];
  /** net.ipv4.vs.conntrack; default on. */
  readonly tracked?: boolean;
  /** More rules, as `TABLE CHAIN RULE`. */
  readonly rules?: readonly string[];
}

const server = (...destinations: readonly string[]) => [
  `-A -t ${VIP}:80 -s rr`,
  ...destinations.map((destination) => `-a -t ${VIP}:80 -r ${destination}`),
];
const here = `${webA1.addresses.IPv4}:8080 -m -w 1`;
const there = `${webB1.addresses.IPv4}:8080 -m -w 1`;
const MASQUERADE = "nat POSTROUTING -j MASQUERADE";
const FROM_SERVER = `nat POSTROUTING -m ipvs --vproto 6 --vaddr ${VIP} --vport 80 -j MASQUERADE`;

/** Packets to a virtual server on node-a, and what stands in their way: the tracer must say what the kernel does. */
export const meaningCases: readonly MeaningCase[] = [
  { name: "from outside to a pod here", from: outside, servers: server(here), rules: [MASQUERADE] },
  { name: "from outside to a pod elsewhere", from: outside, servers: server(there), rules: [MASQUERADE] },
  { name: "from a pod", from: clientA, servers: server(here) },
  { name: "from the node itself", from: NODE_A, servers: server(here), rules: [MASQUERADE] },
  { name: "from the node itself to its own port", from: NODE_A, servers: server(`${NODE_A.addresses.IPv4}:8080 -m`) },
  { name: "from outside to the node's own port", from: outside, servers: server(`${NODE_A.addresses.IPv4}:8080 -m`) },
  { name: "without connection tracking", from: clientA, servers: server(here), tracked: false, rules: [MASQUERADE] },
  { name: "no destination: a pod", from: clientA, servers: server() },
  { name: "no destination: somebody outside", from: outside, servers: server() },
  { name: "no destination: the node itself", from: NODE_A, servers: server() },
  { name: "none but those of weight 0", from: clientA, servers: server(`${webA1.addresses.IPv4}:8080 -m -w 0`) },
  {
    name: "weight 0 beside another",
    from: clientA,
    servers: server(`${webB1.addresses.IPv4}:8080 -m -w 0`, here),
  },
  { name: "a port that no server has", from: clientA, port: 6443, servers: server(here) },
  {
    name: "refused before it reaches the server",
    from: clientA,
    servers: server(here),
    rules: ["filter INPUT -p tcp -m tcp --dport 80 -j REJECT --reject-with icmp-port-unreachable"],
  },
  { name: "-m ipvs knows what a server sent on", from: clientA, servers: server(here), rules: [FROM_SERVER] },
  {
    name: "translated by a rule before",
    from: clientA,
    servers: server(here),
    rules: [`nat PREROUTING -p tcp -m tcp --dport 80 -j DNAT --to-destination ${apiServer.addresses.IPv4}:8080`],
  },
];
