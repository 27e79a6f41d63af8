import type { ForwardingPlan, Frontend, IPFamily, PlanEndpoint, ServicePortGroup, Treatment } from "@fairlead/core";

const ADDRESSES = {
  IPv4: {
    service: (n: number) => `10.96.0.${n}`,
    pod: (n: number) => `10.144.0.${n}`,
    pods: "10.144.0.0/16",
    node: "10.201.0.10",
  },
  IPv6: {
    service: (n: number) => `fd00:10:96::${n}`,
    pod: (n: number) => `fd00:144::${n}`,
    pods: "fd00:144::/48",
    node: "fd00:201::10",
  },
} as const;

/**
 * Of each kind of frontend, policy and protocol one, with and without affinity and weights, and one that is balanced by
 * its clients' addresses: everything that a table can have.
 */
export function planOfEveryKind(family: IPFamily, name = "web"): ForwardingPlan {
  const { pods, node } = ADDRESSES[family];
  const groups = (["TCP", "UDP", "SCTP"] as const).flatMap((protocol, at) =>
    [undefined, 600].map((affinity, twice) =>
      groupOfEveryKind(family, `${name}-${2 * at + twice}`, 2 * at + twice + 1, protocol, affinity),
    ),
  );
  const hashed: ServicePortGroup = {
    ...groupOfEveryKind(family, `${name}-hashed`, HASHED, "TCP"),
    balance: "source-hash",
  };
  const weights = { cluster: { endpoints: [9, 9, 2], refused: 5 }, local: { endpoints: [1], refused: 3 } };
  const weighted = [undefined, 600].map((affinity, at) => ({
    ...groupOfEveryKind(family, `${name}-weighted-${at}`, HASHED + 1 + at, "TCP", affinity),
    weights,
  }));
  return {
    family,
    groups: new Map([...groups, hashed, ...weighted].map((group) => [group.id, group])),
    node: {
      detector: { kind: "cidrs", cidrs: [pods] },
      nodePortAddresses: { kind: "list", addresses: [node] },
      serviceCIDRs: [family === "IPv4" ? "10.96.0.0/12" : "fd00:10:96::/108"],
      resetStaleTCP: true,
    },
    healthChecks: new Map(),
    foreignClusterIPs: new Set([ADDRESSES[family].service(200)]),
    endpointCount: 3 * (groups.length + 3),
  };
}

/** From here on numbers that no other has. */
const HASHED = 9;

export function groupOfEveryKind(
  family: IPFamily,
  name: string,
  number: number,
  protocol: ServicePortGroup["protocol"],
  affinitySeconds?: number,
): ServicePortGroup {
  const { service, pod, node } = ADDRESSES[family];
  const endpoints = [1, 2, 3].map((n): PlanEndpoint => ({ address: pod(10 * number + n), port: 8080, local: n === 1 }));
  return {
    id: `default/${name}/${protocol.toLowerCase()}`,
    name: `default/${name}`,
    service: `default/${name}`,
    family,
    protocol,
    cluster: endpoints,
    local: endpoints.slice(0, 1),
    serving: endpoints,
    endpointCount: 3,
    ...(affinitySeconds !== undefined && { affinitySeconds }),
    frontends: [
      frontend("cluster-ip", "Cluster", service(number)),
      frontend("external-ip", "Cluster", service(number + 20)),
      {
        ...frontend("load-balancer", "Local", service(number + 40)),
        gate: { ranges: [`${node}/${family === "IPv4" ? 32 : 128}`], addresses: [node] },
      },
      { ...frontend("node-port", "Cluster"), port: 30_000 + number },
      { ...frontend("node-port", "Local"), port: 31_000 + number },
      { ...frontend("cluster-ip", "Cluster", service(number + 60)), treatments: always({ verdict: "reject" }) },
    ],
    annotations: {},
  };
}

function frontend(kind: Frontend["kind"], policy: Frontend["policy"], address?: string): Frontend {
  const treatments =
    policy === "Cluster"
      ? always(proxied("cluster", kind !== "cluster-ip"))
      : { pod: proxied("cluster", false), node: proxied("cluster", true), outside: proxied("local", false) };
  const reach = kind === "cluster-ip" ? "internal" : "external";
  const at = kind === "node-port" ? "node-port" : "address";
  return { kind, reach, at, policy, port: 80, treatments, ...(address !== undefined && { address }) };
}

function proxied(set: "cluster" | "local", masquerade: boolean): Treatment {
  return { verdict: "proxy", set, masquerade };
}

function always(treatment: Treatment): Frontend["treatments"] {
  return { pod: treatment, node: treatment, outside: treatment };
}
