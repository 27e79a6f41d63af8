import { LEAVING_RULES } from "@fairlead/intake";
import { advice } from "./advice.ts";
import { good, warning } from "./diagnosis.ts";
import type { Diagnosis, IsolatedService, NodeFacts } from "./facts.ts";
import { named } from "./named.ts";

/** Services whose pods nodes reach by no address that EndpointSlices have: they are their own network's to serve. */
export function isolated({ isolated: services = [], api }: NodeFacts): readonly Diagnosis[] {
  if (services.length === 0) return [];
  const check = "Services in networks that nodes do not share";
  const subnets = api.kind === "answers" ? api.subnets : undefined;
  const served = services.filter(({ isServed }) => isServed);
  if (served.length === 0) return [good(check, `left to their networks: ${byNetwork(services, subnets)}`)];
  const rules = [...new Set(served.map(({ network }) => LEAVING_RULES[network.kind]))];
  const what = `add ${rules.join(" and ")} to multiCNI.serviceRules: what is served of them here leads nowhere, or to another pod`;
  return [
    warning(
      check,
      `served here, where no node can reach the pods: ${byNetwork(served, subnets)}`,
      advice("leave-isolated", what),
    ),
  ];
}

/** `VPC blue (Subnet blue-net 10.0.1.0/24): shop/api, shop/web` */
function byNetwork(services: readonly IsolatedService[], subnets: readonly VPCSubnet[] = []): string {
  const groups = Map.groupBy(services, ({ network: { kind, name } }) => `${kind} ${name}`);
  const lines = Array.from(groups, ([network, these]) => {
    const [first] = these;
    const own = first?.network.kind === "VPC" ? subnets.filter(({ vpc }) => vpc === first.network.name) : [];
    const where =
      own.length === 0 ? network : `${network} (${named(own.map(({ name, cidr }) => `Subnet ${name} ${cidr}`))})`;
    return `${where}: ${named([...new Set(these.map(({ service }) => service))].sort())}`;
  });
  const more = lines.length - MOST_NETWORKS;
  return `${lines.slice(0, MOST_NETWORKS).join("; ")}${more > 0 ? `; and ${more} more networks` : ""}`;
}

const MOST_NETWORKS = 5;

type VPCSubnet = NonNullable<Extract<NodeFacts["api"], { kind: "answers" }>["subnets"]>[number];
