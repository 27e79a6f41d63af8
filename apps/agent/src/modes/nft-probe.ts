import { toEnd } from "@fairlead/base";
import {
  ClusterState,
  decodeEndpointSlice,
  decodeService,
  type ForwardingPlan,
  type IPFamily,
  type ModeSemantics,
  Planner,
} from "@fairlead/core";

/** A range for documentation of each family (RFC 5737, RFC 3849), and how its addresses begin. */
const RANGES = {
  IPv4: { all: "198.51.100.0/24", from: "198.51.100." },
  IPv6: { all: "2001:db8::/64", from: "2001:db8::" },
} as const;

/** A plan with everything that services can ask of the kernel in a mode, made as plans of clusters are. */
export function probePlan(family: IPFamily, semantics: ModeSemantics): ForwardingPlan {
  const { all, from } = RANGES[family];
  const planner = new Planner({
    nodeName: "probe",
    families: [family],
    nodeIPs: {},
    detectors: { [family]: { kind: "cidrs", cidrs: [all] } },
    nodePortAddresses: { [family]: { kind: "list", addresses: [`${from}9`] } },
    serviceCIDRs: { [family]: [all] },
    masqueradeAll: false,
    resetStaleTCP: true,
    semantics,
  });
  toEnd(planner.replan(probeState(family, all, from), "all", { get: () => undefined }));
  return planner.plan(family);
}

function probeState(family: IPFamily, all: string, from: string): ClusterState {
  const state = new ClusterState();
  const ports = (["TCP", "UDP", "SCTP"] as const).map((protocol, at) => ({
    name: protocol.toLowerCase(),
    protocol,
    port: 80,
    nodePort: 30_000 + at,
  }));
  const balanced = {
    type: "LoadBalancer",
    ports,
    sessionAffinity: "ClientIP",
    externalIPs: [`${from}2`],
    loadBalancerSourceRanges: [all],
  };
  const services = {
    empty: { clusterIP: `${from}5`, type: "NodePort", ports: [{ port: 80, nodePort: 30_010 }] },
    local: { clusterIP: `${from}6`, externalTrafficPolicy: "Local", ...balanced, externalIPs: [`${from}3`] },
    wide: { clusterIP: `${from}7`, ...balanced },
  };
  for (const [name, spec] of Object.entries(services)) {
    const metadata = { namespace: "probe", name };
    const status = { loadBalancer: { ingress: [{ ip: `${from}${spec.clusterIP.at(-1)}0` }] } };
    const service = decodeService({ metadata, spec, status }).object;
    if (service !== undefined) state.upsertService(service);
    const slice = decodeEndpointSlice(probeSlice(family, name, from)).object;
    if (slice !== undefined && name !== "empty") state.upsertSlice(slice);
  }
  return state;
}

function probeSlice(addressType: IPFamily, name: string, from: string) {
  return {
    metadata: { namespace: "probe", name, labels: { "kubernetes.io/service-name": name } },
    addressType,
    ports: ["TCP", "UDP", "SCTP"].map((protocol) => ({ name: protocol.toLowerCase(), protocol, port: 8080 })),
    endpoints: [
      { addresses: [`${from}20`], nodeName: "probe", conditions: { ready: true } },
      { addresses: [`${from}21`], nodeName: "other", conditions: { ready: true } },
    ],
  };
}
