import { OWNERSHIP } from "../../multi-cni/networks.ts";
import { ipPool, subnet } from "../learning.ts";
import { around, CONTROLLER, EDITOR, endpointSubnets, KUBELET, overAPI, PORTS, service, TENANT, typo } from "./aims.ts";
import type { NetworkAttack, Step } from "./attack.ts";
import type { Bystanders } from "./bystanders.ts";
import { RENAMED_VPC } from "./configuration.ts";

const VPC_ANNOTATION = "ovn.kubernetes.io/vpc";

function udn({ tenant }: Bystanders, name: string, cidr: string): Step {
  const spec = { topology: "Layer2", layer2: { role: "Primary", subnets: [cidr] } };
  const metadata = { name, namespace: tenant };
  return { create: { apiVersion: "k8s.ovn.org/v1", kind: "UserDefinedNetwork", metadata, spec } };
}

/** Addresses of our endpoints, and the only one of the other network's service. */
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

const claimed = ({ tenant, balancer }: Bystanders, annotations = {}): readonly Step[] => [
  { create: service(tenant, "a", { ports: PORTS, externalIPs: [balancer] }, annotations) },
];

const wide = ({ theirCIDR }: Bystanders) => around(theirCIDR.replace(/\/.*/, ""), 12);

/** Where the sources of other networks have `within`. */
export const guardedRows: readonly NetworkAttack[] = [
  {
    name: "three /29 user-defined networks over the endpoints of DNS, a service and the API server",
    outcome: "ignored",
    who: TENANT,
    steps: (at) => endpointSubnets(at).map((cidr, number) => udn(at, `udn-${number}`, cidr)),
    reported: (at) => endpointSubnets(at).map((cidr) => ({ cidr })),
  },
  {
    name: "a user-defined network that is the /24 of DNS",
    outcome: "ignored",
    who: TENANT,
    steps: (at) => [udn(at, "mine", around(at.dnsEndpoint, 24))],
    reported: (at) => [{ cidr: around(at.dnsEndpoint, 24) }],
  },
  {
    name: "a Subnet over the API server",
    outcome: "refused",
    who: EDITOR,
    steps: (at) => [{ create: subnet("over-api", overAPI(at)) }],
    reported: (at) => [refused(overAPI(at), "Subnet/over-api", "lies in no entry of within of kube-ovn-subnets")],
  },
  {
    name: "an IPPool of 10.0.0.0/8",
    outcome: "refused",
    who: EDITOR,
    steps: () => [{ create: ipPool("wide", "10.0.0.0/8") }],
    reported: () => [refused("10.0.0.0/8", "IPPool/wide", "overlaps the service CIDR")],
  },
  {
    name: "an IPPool around the other network",
    outcome: "refused",
    who: EDITOR,
    steps: (at) => [{ create: ipPool("around", wide(at)) }],
    reported: (at) => [
      refused(wide(at), "IPPool/around", `contains ${at.theirCIDR} (within of kube-ovn-subnets), which is another`),
    ],
  },
  {
    name: "an IPPool equal to a Subnet",
    outcome: "refused",
    who: EDITOR,
    steps: ({ theirCIDR }) => [{ create: ipPool("same", theirCIDR) }],
    reported: ({ theirCIDR }) => [refused(theirCIDR, "IPPool/same", "which is another network's")],
  },
  {
    name: "a Node with podCIDRs inside our pool and addresses of endpoints",
    outcome: "refused",
    who: KUBELET,
    steps: nodeOf,
    reported: (at) => [refused(typo(at), "Node/node-z", "lies in no entry of within of nodes")],
  },
  {
    name: "a default VPC of another name, on every Service",
    outcome: "ignored",
    who: CONTROLLER,
    steps: vpcOf,
    reported: () => [],
  },
  {
    name: "externalIPs with a load balancer's address, in a namespace that sorts first",
    outcome: "refused",
    who: TENANT,
    steps: (at) => claimed(at),
    reported: () => [],
    logged: ({ scene }) => `already belongs to ${scene.namespace}/balanced`,
  },
  {
    name: "the same of a Service that is left to another network",
    outcome: "refused",
    who: TENANT,
    steps: (at) => claimed(at, { [OWNERSHIP]: "foreign" }),
    reported: () => [],
  },
];

function refused(cidr: string, object: string, why: string) {
  return { cidr, object, why, stage: "refused" } as const;
}
