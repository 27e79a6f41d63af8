/** The rows of attacks, with guarded sources and with open ones. */

import type { ApiObject, ApiUser } from "@fairlead/lab/control-plane/api-client";
import { OWNERSHIP } from "../../multi-cni/untouched.ts";
import { ipPool, subnet } from "../learning.ts";
import { type Bystanders, RENAMED_VPC } from "./bystanders.ts";

const TENANT = { name: "tenant" };
/** Who may edit the networks' own objects, which have no namespace. */
const EDITOR = { name: "network-editor" };
const CONTROLLER = { name: "kube-ovn-controller" };
const KUBELET = { name: "system:node:node-z", groups: ["system:nodes"] };

const typo = (at: Bystanders) => around(at.webEndpoint, 29);

const wide = ({ theirCIDR }: Bystanders) => around(theirCIDR.replace(/\/.*/, ""), 12);

const PORTS = [{ port: 80 }];

const claimed = ({ tenant, balancer }: Bystanders, annotations = {}): readonly Step[] => [
  { create: service(tenant, "a", { ports: PORTS, externalIPs: [balancer] }, annotations) },
];

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

const half = ({ pool }: Bystanders) => around(pool.slice(0, pool.indexOf("/")), 17);

const DUMMIES = 12;

/** Where no source has `within`. */
export const openRows: readonly NetworkAttack[] = [
  {
    name: "a Subnet inside our pool by mistake, made and deleted",
    outcome: "held",
    who: EDITOR,
    steps: (at) => [{ create: subnet("typo", typo(at)) }],
    reported: (at) => [held(typo(at), "Subnet/typo", at)],
    logged: (at) => `fairlead ownership --accept ${typo(at)}`,
  },
  {
    name: "a Subnet over the API server",
    outcome: "ignored",
    who: EDITOR,
    steps: (at) => [{ create: subnet("over-api", overAPI(at)) }],
    reported: (at) => [{ cidr: overAPI(at), stage: "effective", object: "Subnet/over-api" }],
  },
  {
    name: "a Subnet that is half of our pool, and Services that make it a small part",
    outcome: "held",
    who: TENANT,
    before: (at) => [subnet("half", half(at))],
    steps: ({ tenant }) =>
      Array.from({ length: DUMMIES }, (_, number) => ({
        create: service(tenant, `dummy-${number}`, { ports: PORTS }),
      })),
    reported: (at) => [held(half(at), "Subnet/half", at)],
  },
  {
    name: "consent from a web page",
    outcome: "refused",
    who: { name: "a page in a browser on the node" },
    before: (at) => [subnet("typo", typo(at))],
    steps: () => [],
    reported: (at) => [held(typo(at), "Subnet/typo", at)],
    meanwhile: (at) => consentFromPage(at, typo(at)),
  },
];

/** What a user does with an object; the user has the rights for exactly these steps. */
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
  readonly stage?: "held" | "refused" | "effective";
  /** `Subnet/typo` */
  readonly object?: string;
  /** A part of the reason. */
  readonly why?: string;
}

/** One row of the table: who makes which objects, and what comes of it. No service changes hands in any of them. */
export interface NetworkAttack {
  readonly name: string;
  /** `ignored`: it takes effect where it may, and decides nothing for the services that it aims at. */
  readonly outcome: "held" | "refused" | "ignored";
  readonly who: ApiUser;
  /** What an administrator has made before. */
  before?(at: Bystanders): readonly ApiObject[];
  steps(at: Bystanders): readonly Step[];
  reported(at: Bystanders): readonly ReportedCIDR[];
  /** A part of a line that every agent logs. */
  logged?(at: Bystanders): string;
  /** After what is reported was seen. */
  meanwhile?(at: Bystanders): Promise<void>;
}

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

function service(namespace: string, name: string, spec: unknown = {}, annotations: unknown = {}): ApiObject {
  return { apiVersion: "v1", kind: "Service", metadata: { name, namespace, annotations }, spec };
}

/** HTTP/1.0 by the shell, as a browser sends a form of another site. */
const POST =
  'exec 3<>/dev/tcp/127.0.0.1/10249 && printf "POST /ownership/accept HTTP/1.0\\r\\nHost: 127.0.0.1:10249\\r\\n' +
  "Origin: http://attacker.example\\r\\nContent-Type: text/plain\\r\\nContent-Length: %s\\r\\n\\r\\n%s" +
  '" "$1" "$2" >&3 && cat <&3';

/**
 * Asks each agent to accept a CIDR, as a page in a browser on its node could.
 *
 * @throws Error when one does not answer 410 Gone
 */
async function consentFromPage({ scene }: Bystanders, cidr: string): Promise<void> {
  const body = JSON.stringify({ cidrs: [cidr] });
  for (const { name, run } of scene.cluster.nodes) {
    const { stdout } = await run(["bash", "-c", POST, "bash", String(body.length), body]);
    const [line = ""] = stdout.split("\r\n");
    if (!/^HTTP\/1\.\d 410 /.test(line)) throw new Error(`wanted 410 of ${name} for a consent by HTTP; came ${line}`);
  }
}
