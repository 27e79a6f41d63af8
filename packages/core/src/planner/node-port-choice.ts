import { familyOf, inAnyOf, parseCIDRLeniently } from "@fairlead/base";
import { compact } from "../data/compact.ts";
import type { IPFamily, Service } from "../objects.ts";
import { isFirstFamily } from "./first-family.ts";
import type { PlannerOptions } from "./options.ts";

/**
 * Annotation of a Service: CIDRs, separated by commas. Its node ports, and its health-check node port, open only on
 * those of the node's node-port addresses that are in one of them (kubernetes/kubernetes#90131 asks for it).
 */
const NODE_PORT_ADDRESSES = "fairlead.dev/node-port-addresses";

/** Where the node ports of one service open in one family. */
export interface NodePortChoice {
  /** Canonical, in the order of `PlannerOptions.nodePortHosts`; empty: nowhere. */
  readonly addresses: readonly string[];
  /** Why that is nowhere, for the service's owner. */
  readonly problem?: { readonly value: string; readonly reason: string };
}

type Asking = Pick<Service, "annotations" | "clusterIPs" | "ports" | "healthCheckNodePort">;

/**
 * What a service asks for; undefined: nothing, so that its node ports open wherever node ports do. It never opens more
 * than without the annotation: a value that cannot be read opens nothing.
 */
export function nodePortChoice(
  service: Asking,
  family: IPFamily,
  options: Pick<PlannerOptions, "families" | "nodePortHosts">,
): NodePortChoice | undefined {
  const value = service.annotations[NODE_PORT_ADDRESSES];
  if (value === undefined || !hasNodePorts(service)) return undefined;
  const cidrs = readCIDRs(value);
  if (cidrs === undefined)
    return closed(isFirstFamily(service, family, options) ? { value, reason: WRONG } : undefined);
  const hosts = options.nodePortHosts?.[family];
  if (hosts === undefined) return closed();
  const own = cidrs.filter((cidr) => familyOf(cidr) === family);
  const addresses = hosts.filter(inAnyOf(own));
  return addresses.length > 0 ? { addresses: compact(addresses) } : closed({ value, reason: nowhere(family, own) });
}

function hasNodePorts({ ports, healthCheckNodePort }: Asking): boolean {
  return healthCheckNodePort !== undefined || ports.some(({ nodePort }) => nodePort !== undefined);
}

const WRONG =
  `${NODE_PORT_ADDRESSES} must be CIDRs separated by commas, as 192.0.2.0/24,2001:db8::/64; ` +
  "no node port of this Service is open";

function nowhere(family: IPFamily, cidrs: readonly string[]): string {
  const why =
    cidrs.length === 0 ? `has no CIDR of ${family}` : `has none of the addresses on which this node serves node ports`;
  return `${NODE_PORT_ADDRESSES} ${why}; no ${family} node port of this Service is open here`;
}

function closed(problem?: NodePortChoice["problem"]): NodePortChoice {
  return problem === undefined ? CLOSED : { ...CLOSED, problem };
}

const CLOSED: NodePortChoice = { addresses: [] };

/** Undefined: one of them is no CIDR. */
function readCIDRs(value: string): readonly string[] | undefined {
  const cidrs = value.split(",").map((one) => parseCIDRLeniently(one.trim())?.text);
  return cidrs.every((cidr) => cidr !== undefined) ? cidrs : undefined;
}
