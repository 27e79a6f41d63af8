import type { AgentConfig } from "@fairlead/config";
import type { OtherResource } from "@fairlead/watch";
import {
  address,
  cidr,
  cidrs,
  either,
  fields,
  flag,
  jsonText,
  type Keep,
  listOf,
  name,
  oneOf,
  text,
  time,
} from "./keep.ts";
import { metadata } from "./metadata.ts";
import { NODE } from "./nodes.ts";
import { atPaths } from "./paths.ts";
import { yamlText } from "./yaml-text.ts";

type Networks = Pick<AgentConfig["multiCNI"], "clusterCIDRsFrom" | "excludeCIDRsFrom" | "serviceRules">;

/** Where objects say their kind. */
const KIND = {
  apiVersion: text(/^[a-z0-9.-]{1,200}(?:\/v\d[a-z0-9]{0,10})?$/),
  kind: text(/^[A-Za-z]{1,63}$/),
} as const;

function object(of: Readonly<Record<string, Keep>>): Keep {
  return fields({ ...KIND, metadata: metadata(), ...of });
}

const CALICO_POOL = object({
  spec: fields({ cidr, disabled: flag, allowedUses: listOf(oneOf("Workload", "Tunnel", "LoadBalancer")) }),
});
const CILIUM_POOL = fields({ cidrs: listOf(either(cidr, fields({ cidr }))) });

/** Of each resource that CIDRs are learned from, what its source reads. */
const BY_RESOURCE: ReadonlyMap<string, Keep> = new Map([
  ["ippools.crd.projectcalico.org", CALICO_POOL],
  ["ippools.projectcalico.org", CALICO_POOL],
  [
    "ippools.crd.antrea.io",
    object({ spec: fields({ ipRanges: listOf(fields({ cidr, start: address, end: address })) }) }),
  ],
  [
    "ciliumnodes.cilium.io",
    object({
      spec: fields({
        ipam: fields({
          podCIDRs: listOf(cidr),
          pools: fields({ allocated: listOf(fields({ pool: name, cidrs: listOf(cidr) })) }),
        }),
      }),
    }),
  ],
  ["ciliumpodippools.cilium.io", object({ spec: fields({ ipv4: CILIUM_POOL, ipv6: CILIUM_POOL }) })],
  [
    "subnets.kubeovn.io",
    object({
      spec: fields({
        cidrBlock: cidrs,
        provider: name,
        vlan: either(name, oneOf("")),
        logicalGateway: flag,
        vpc: name,
      }),
    }),
  ],
  ["vpcs.kubeovn.io", object({ status: fields({ default: flag }) })],
  ["spiderippools.spiderpool.spidernet.io", object({ spec: fields({ subnet: cidr }) })],
  ["nodes.", NODE],
]);

const ACCEPTED = yamlText(listOf(fields({ cidr, source: name, until: time })));
const SERVICE_KEYS = yamlText(listOf(text(/^[a-z0-9-]{1,63}\/[a-z0-9.-]{1,253}$/)));

/** The two ConfigMaps that agents read; nothing of any other one is kept. */
const CONFIG_MAP = object({
  data: fields({
    "net-conf.json": jsonText(fields({ Network: cidr, IPv6Network: cidr })),
    accepted: ACCEPTED,
    forgotten: ACCEPTED,
    unprotected: SERVICE_KEYS,
  }),
});

/** What a dump keeps of the objects of a resource that networks are learned from. */
export function networkKeep({ group, version, plural }: OtherResource, networks: Networks): Keep {
  const custom = [...networks.clusterCIDRsFrom, ...networks.excludeCIDRsFrom].flatMap((one) =>
    one.source === "custom" && one.resource === [plural, version, group].filter((part) => part !== "").join(".")
      ? one.fields
      : [],
  );
  const known = plural === "configmaps" && group === "" ? CONFIG_MAP : BY_RESOURCE.get(`${plural}.${group}`);
  if (plural === "namespaces" && group === "") return namespaceKeep(networks);
  if (custom.length === 0) return known ?? object({});
  const described = atPaths(custom, cidrs);
  // Where objects are of a known resource as well, both say what is read.
  return (value) => merged((known ?? object({}))(value), described(value));
}

function namespaceKeep({ serviceRules }: Networks): Keep {
  const labels = serviceRules.flatMap((rule) =>
    // OVN-Kubernetes' label has no value.
    "namespaceLabel" in rule ? [[rule.namespaceLabel, either(name, oneOf(""))] as const] : [],
  );
  return fields({ ...KIND, metadata: metadata({ labels: Object.fromEntries(labels) }) });
}

function merged(first: unknown, second: unknown): unknown {
  if (!isPlain(first) || !isPlain(second)) return second ?? first;
  const both = Object.entries(second).map(([key, value]) => [key, merged(first[key], value)] as const);
  return { ...first, ...Object.fromEntries(both) };
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
