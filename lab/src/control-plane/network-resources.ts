import type { ApiObject } from "./api-client.ts";

/** A part of an OpenAPI schema, as a CustomResourceDefinition has it. */
type Schema = Readonly<Record<string, unknown>>;

const TEXT: Schema = { type: "string" };
const FLAG: Schema = { type: "boolean" };
const TEXTS: Schema = { type: "array", items: TEXT };
const fields = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: "object", properties });
const items = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: "array", items: fields(properties) });
const spec = (properties: Readonly<Record<string, Schema>>) => fields({ spec: fields(properties) });
const ROLE: Schema = { type: "string", enum: ["Primary", "Secondary"] };

const calicoIPPool = spec({
  cidr: TEXT,
  disabled: FLAG,
  nodeSelector: TEXT,
  namespaceSelector: fields({}),
  allowedUses: { type: "array", items: { type: "string", enum: ["Workload", "Tunnel", "LoadBalancer"] } },
});
const userDefinedNetwork = {
  topology: { type: "string", enum: ["Layer2", "Layer3", "Localnet"] },
  layer2: fields({ role: ROLE, subnets: TEXTS }),
  layer3: fields({ role: ROLE, subnets: items({ cidr: TEXT, hostSubnet: { type: "integer" } }) }),
};

/** What pod networks describe themselves by, with the fields that their documentation has for pods' addresses. */
export const networkResources: readonly ApiObject[] = [
  definition("kubeovn.io", "Subnet", "subnets", {
    v1: spec({
      ...{ cidrBlock: TEXT, vpc: TEXT, protocol: TEXT, provider: TEXT, vlan: TEXT, gateway: TEXT, gatewayType: TEXT },
      ...{
        default: FLAG,
        logicalGateway: FLAG,
        enableLb: FLAG,
        natOutgoing: FLAG,
        namespaces: TEXTS,
        excludeIps: TEXTS,
      },
    }),
  }),
  definition("kubeovn.io", "Vpc", "vpcs", {
    v1: fields({ spec: fields({ namespaces: TEXTS }), status: fields({ default: FLAG, subnets: TEXTS }) }),
  }),
  definition("crd.projectcalico.org", "IPPool", "ippools", { v1: calicoIPPool }),
  definition("projectcalico.org", "IPPool", "ippools", { v3: calicoIPPool }),
  definition("cilium.io", "CiliumNode", "ciliumnodes", {
    v2: spec({
      ipam: fields({ podCIDRs: TEXTS, pools: fields({ allocated: items({ pool: TEXT, cidrs: TEXTS }) }) }),
    }),
  }),
  definition("cilium.io", "CiliumPodIPPool", "ciliumpodippools", {
    v2: spec({ ipv4: fields({ cidrs: items({ cidr: TEXT }) }), ipv6: fields({ cidrs: items({ cidr: TEXT }) }) }),
  }),
  definition("k8s.ovn.org", "ClusterUserDefinedNetwork", "clusteruserdefinednetworks", {
    v1: spec({ namespaceSelector: fields({}), network: fields(userDefinedNetwork) }),
  }),
  definition(
    "k8s.ovn.org",
    "UserDefinedNetwork",
    "userdefinednetworks",
    { v1: spec(userDefinedNetwork) },
    "Namespaced",
  ),
  definition("crd.antrea.io", "IPPool", "ippools", {
    v1beta1: spec({ ipRanges: items({ cidr: TEXT, start: TEXT, end: TEXT }) }),
  }),
  definition("spiderpool.spidernet.io", "SpiderIPPool", "spiderippools", {
    v2beta1: spec({ subnet: TEXT, disable: FLAG, ips: TEXTS }),
  }),
];

/** One of them. @throws Error when there is none of that kind in the group */
export function networkResource(group: string, kind: string): ApiObject {
  const found = networkResources.find(({ spec: of }) => isOf(of, group, kind));
  if (found === undefined) throw new Error(`no resource ${kind} of ${group} is written down`);
  return found;
}

function isOf(spec: unknown, group: string, kind: string): boolean {
  const { group: itsGroup, names }: { readonly group?: unknown; readonly names?: { readonly kind?: unknown } } =
    typeof spec === "object" && spec !== null ? spec : {};
  return itsGroup === group && names?.kind === kind;
}

/** @param versions each with its schema; the first is stored */
function definition(
  group: string,
  kind: string,
  plural: string,
  versions: Readonly<Record<string, Schema>>,
  scope: "Cluster" | "Namespaced" = "Cluster",
): ApiObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: {
      name: `${plural}.${group}`,
      // Names that look like Kubernetes' own are let in with such a link only.
      annotations: { "api-approved.kubernetes.io": "unapproved, for tests" },
    },
    spec: {
      group,
      scope,
      names: { kind, plural, singular: kind.toLowerCase(), listKind: `${kind}List` },
      versions: Object.entries(versions).map(([name, openAPIV3Schema], at) => ({
        name,
        served: true,
        storage: at === 0,
        schema: { openAPIV3Schema },
      })),
    },
  };
}
