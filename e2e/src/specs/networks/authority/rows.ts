/** The rows of attacks, with guarded sources and with open ones. */

import type { ApiObject } from "@fairlead/lab/control-plane/api-client";
import { subnet } from "../learning.ts";
import { type Bystanders, RENAMED_VPC } from "./bystanders.ts";

const typo = (at: Bystanders) => around(at.webEndpoint, 29);

const PORTS = [{ port: 80 }];

const claimed = ({ tenant, balancer }: Bystanders): readonly Step[] => [
  { create: service(tenant, "a", { ports: PORTS, externalIPs: [balancer] }) },
];

/** Where the sources of other networks have `within`. */
export const guardedRows: readonly NetworkAttack[] = [
  {
    name: "three /29 user-defined networks over the endpoints of DNS, a service and the API server",
    outcome: "ignored",
    steps: (at) => endpointSubnets(at).map((cidr, number) => udn(at, `udn-${number}`, cidr)),
    reported: (at) => endpointSubnets(at).map((cidr) => ({ cidr })),
  },
  {
    name: "a Subnet over the API server",
    outcome: "refused",
    steps: (at) => [{ create: subnet("over-api", overAPI(at)) }],
    reported: (at) => [refused(overAPI(at), "Subnet/over-api", "lies in no entry of within of kube-ovn-subnets")],
  },
  {
    name: "a Node with podCIDRs inside our pool and addresses of endpoints",
    outcome: "refused",
    steps: nodeOf,
    reported: (at) => [refused(typo(at), "Node/node-z", "lies in no entry of within of nodes")],
  },
  {
    name: "a default VPC of another name, on every Service",
    outcome: "ignored",
    steps: vpcOf,
    reported: () => [],
  },
  {
    name: "externalIPs with a load balancer's address, in a namespace that sorts first",
    outcome: "refused",
    steps: claimed,
    reported: () => [],
    logged: ({ scene }) => `already belongs to ${scene.namespace}/balanced`,
  },
];

/** Where no source has `within`. */
export const openRows: readonly NetworkAttack[] = [
  {
    name: "a Subnet inside our pool by mistake, made and deleted",
    outcome: "held",
    steps: (at) => [{ create: subnet("typo", typo(at)) }],
    reported: (at) => [held(typo(at), "Subnet/typo", at)],
    logged: (at) => `fairlead ownership --accept ${typo(at)}`,
  },
];

/** What becomes of an object. */
export type Step =
  | { readonly create: ApiObject }
  | {
      readonly patch: ApiObject;
      readonly part?: "status";
      readonly change: unknown;
      /** What takes it back; absent: it goes with its object. */
      readonly back?: unknown;
    };

/** What every agent's `/ownership` reports of a CIDR while the attack lasts. */
export interface ReportedCIDR {
  readonly cidr: string;
  /** Absent: nothing is learned of it. */
  readonly stage?: "held" | "refused";
  /** `Subnet/typo` */
  readonly object?: string;
  /** A part of the reason. */
  readonly why?: string;
}

/** One row of the table: which objects are made, and what comes of it. No service changes hands in any of them. */
export interface NetworkAttack {
  readonly name: string;
  /** `ignored`: it decides nothing for the services that it aims at. */
  readonly outcome: "held" | "refused" | "ignored";
  steps(at: Bystanders): readonly Step[];
  reported(at: Bystanders): readonly ReportedCIDR[];
  /** A part of a line that every agent logs. */
  logged?(at: Bystanders): string;
}

const VPC_ANNOTATION = "ovn.kubernetes.io/vpc";

function udn({ tenant }: Bystanders, name: string, cidr: string): Step {
  const spec = { topology: "Layer2", layer2: { role: "Primary", subnets: [cidr] } };
  const metadata = { name, namespace: tenant };
  return { create: { apiVersion: "k8s.ovn.org/v1", kind: "UserDefinedNetwork", metadata, spec } };
}

function nodeOf(at: Bystanders): readonly Step[] {
  const node = { apiVersion: "v1", kind: "Node", metadata: { name: "node-z" } };
  const podCIDR = typo(at);
  const claimed = [at.webEndpoint, at.dnsEndpoint, at.theirEndpoint];
  const addresses = claimed.map((address) => ({ type: "InternalIP", address }));
  return [
    { create: { ...node, spec: { podCIDR, podCIDRs: [podCIDR] } } },
    { patch: node, part: "status", change: { status: { addresses } } },
  ];
}

function vpcOf({ scene }: Bystanders): readonly Step[] {
  const annotated = [
    ["kube-system", "kube-dns"],
    ["default", "kubernetes"],
    [scene.namespace, "web"],
    [scene.namespace, "balanced"],
  ] as const;
  const annotation = (value: string | null) => ({ metadata: { annotations: { [VPC_ANNOTATION]: value } } });
  return annotated.map(([namespace, name]) => {
    return { patch: service(namespace, name), change: annotation(RENAMED_VPC), back: annotation(null) };
  });
}

function refused(cidr: string, object: string, why: string) {
  return { cidr, object, why, stage: "refused" } as const;
}

function held(cidr: string, object: string, { pool }: Bystanders) {
  return { cidr, object, why: `lies in ${pool} (IPPool/default-ipv4), which is ours`, stage: "held" } as const;
}

/** The block of that length around an IPv4 address. */
function around(address: string, length: number): string {
  const number = address.split(".").reduce((sum, part) => sum * 256 + Number(part), 0);
  const size = 2 ** (32 - length);
  const first = Math.floor(number / size) * size;
  return `${[24, 16, 8, 0].map((shift) => (first >>> shift) & 255).join(".")}/${length}`;
}

/** What others aim at: the endpoints of three services, a part of our pool, and the API server. */
const endpointSubnets = (at: Bystanders) =>
  [at.dnsEndpoint, at.webEndpoint, at.apiServer].map((one) => around(one, 29));

const overAPI = (at: Bystanders) => around(at.apiServer, 24);

function service(namespace: string, name: string, spec: unknown = {}): ApiObject {
  return { apiVersion: "v1", kind: "Service", metadata: { name, namespace }, spec };
}
