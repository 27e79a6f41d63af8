import type { IPFamily } from "@fairlead/base";
import { CLIENT, LINKS, OUTSIDE } from "./ground.ts";
import { clusterIP, type Protocol, SERVICES, type ServiceName, TARGETS } from "./objects.ts";

/** Flows of one kind, and what happens while they are open. */
export interface Case {
  readonly from: string;
  readonly protocol: Protocol;
  readonly to: (family: IPFamily) => string;
  readonly port: number;
  readonly flows: number;
  readonly bytes: number;
  /** Lines for sh, once the flows are open. */
  readonly meanwhile?: readonly string[];
}

/** The node's port that another program translates, as Docker does with `--publish`. */
const PUBLISHED = 8_888;

/** As lines for sh: what other programs have on the node. */
export function othersLines(): readonly string[] {
  const translated = (["IPv4", "IPv6"] as const).map((family) => {
    const [server = ""] = LINKS.server.others[family];
    const { table, address } = {
      IPv4: { table: "ip", address: server },
      IPv6: { table: "ip6", address: `[${server}]` },
    }[family];
    const rule = `${table} daddr ${LINKS.outside.node[family]} tcp dport ${PUBLISHED} dnat to ${address}:${TARGETS.tcp}`;
    return `table ${table} docker { chain published { type nat hook prerouting priority dstnat; ${rule}; }; }`;
  });
  return translated.map((table) => `on_node nft '${table}'`);
}

/** Before the count, so that no packet that is dropped counts as one that rules have let pass. */
const DROP = `on_node nft insert rule inet spy forward udp dport ${TARGETS.udp} drop`;
const FORGET = "for each in ipv4 ipv6; do on_node conntrack -D -f $each -p udp > /dev/null 2>&1 || true; done";

/** By name. */
export const CASES = {
  "TCP connections at the same time": toService("web", "tcp", 200),
  "UDP flows at the same time": toService("web", "udp", 200),
  "one UDP flow": toService("web", "udp", 1),
  "TCP from outside to a node port": toNodePort("tcp"),
  "UDP from outside to a node port": toNodePort("udp"),
  "TCP of a pod to itself": toService("own", "tcp", 20),
  "UDP of a pod to itself": toService("own", "udp", 20),
  "datagrams in fragments": { ...toService("web", "udp", 20), bytes: 4_000 },
  SCTP: toService("web", "sctp", 20),
  "TCP to a Service with the annotation": toService("excepted", "tcp", 20),
  "UDP to a Service with the annotation": toService("excepted", "udp", 20),
  "TCP that another program translates": { ...toNodePort("tcp"), port: PUBLISHED },
  "UDP, a DROP comes later": { ...toService("web", "udp", 20), meanwhile: [DROP] },
  "UDP, a DROP comes later and conntrack forgets the flows": {
    ...toService("web", "udp", 20),
    meanwhile: [DROP, FORGET],
  },
  "UDP to a Service with the annotation, a DROP comes later": {
    ...toService("excepted", "udp", 20),
    meanwhile: [DROP],
  },
} as const satisfies Record<string, Case>;
export type CaseName = keyof typeof CASES;

function toService(name: ServiceName, protocol: Protocol, flows: number): Case {
  const port = SERVICES[name].ports[protocol];
  return { from: CLIENT, protocol, to: (family) => clusterIP(name, family), port, flows, bytes: 64 };
}

function toNodePort(protocol: Protocol): Case {
  const to = (family: IPFamily) => LINKS.outside.node[family];
  return { from: OUTSIDE, protocol, to, port: SERVICES.web.nodePort, flows: 20, bytes: 64 };
}
