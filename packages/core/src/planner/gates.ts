/** Who may use a service's frontends: the source ranges of its load-balancer addresses, and of its node ports. */

import { contains, familyOf, parseCIDRLeniently } from "@fairlead/base";
import type { ModeSemantics } from "../backend.ts";
import { compact } from "../data.ts";
import { NODE_PORT_SOURCE_RANGES } from "../decode/service-notices.ts";
import type { IPFamily, Service } from "../objects.ts";
import type { AllowedSources, FrontendKind } from "../plan.ts";
import type { Problem } from "../problem.ts";

/** By kind of frontend; absent: every client. */
export type Gates = { readonly [Kind in FrontendKind]?: AllowedSources };

/**
 * The clients that may use the frontends of a service in a family.
 *
 * @param nodeIP the node's primary address of the family
 */
export function gatesOf(service: Service, family: IPFamily, nodeIP: string | undefined): Gates {
  const loadBalancer = loadBalancerGate(service, family, nodeIP);
  const nodePort = nodePortRanges(service, family);
  if (loadBalancer === undefined && nodePort === undefined) return OPEN;
  return {
    ...(loadBalancer && { "load-balancer": loadBalancer }),
    ...(nodePort && { "node-port": { ranges: nodePort, addresses: NONE } }),
  };
}

/**
 * The ranges whose packets the node ports of a service let in, in one family, from any sender; undefined: all. The
 * annotation has CIDRs, separated by commas (kubernetes/kubernetes#33586 asks for it). It never lets in more than
 * without it: a value that cannot be read lets no client in. The health-check node port is open to all clients.
 */
export function nodePortRanges(
  { annotations }: Pick<Service, "annotations">,
  family: IPFamily,
): readonly string[] | undefined {
  const value = annotations[NODE_PORT_SOURCE_RANGES];
  if (value === undefined) return undefined;
  const own = (readCIDRs(value) ?? NONE).filter((cidr) => familyOf(cidr) === family);
  return own.some((cidr) => cidr.endsWith("/0")) ? undefined : compact([...new Set(own)]);
}

/**
 * What the service's owner may not have meant.
 *
 * @param isFirst whether the family is the service's first one, which reports for both
 */
export function nodePortRangesProblem(
  { annotations, ports }: Pick<Service, "annotations" | "ports">,
  family: IPFamily,
  isFirst: boolean,
  { ignoresSourceRanges }: Pick<ModeSemantics, "ignoresSourceRanges">,
): Pick<Problem, "value" | "reason" | "effect"> | undefined {
  const value = annotations[NODE_PORT_SOURCE_RANGES];
  if (value === undefined || ports.every(({ nodePort }) => nodePort === undefined)) return undefined;
  if (ignoresSourceRanges) return isFirst ? { value, reason: NOT_ENFORCED, effect: "open" } : undefined;
  const cidrs = readCIDRs(value);
  if (cidrs === undefined) return isFirst ? { value, reason: WRONG } : undefined;
  if (cidrs.some((cidr) => familyOf(cidr) === family)) return undefined;
  const reason = `${NODE_PORT_SOURCE_RANGES} has no CIDR of ${family}; the ${family} node ports of this Service let no client in`;
  return { value, reason, effect: "lost" };
}

/** CIDRs, separated by commas. Undefined: one of them is no CIDR. */
export function readCIDRs(value: string): readonly string[] | undefined {
  const cidrs = value.split(",").map((one) => parseCIDRLeniently(one.trim())?.text);
  return cidrs.every((cidr) => cidr !== undefined) ? cidrs : undefined;
}

const NOT_ENFORCED = `${NODE_PORT_SOURCE_RANGES} is not enforced in this mode: every client reaches the node ports`;

const WRONG =
  `${NODE_PORT_SOURCE_RANGES} must be CIDRs separated by commas, as 192.0.2.0/24,2001:db8::/64; ` +
  "the node ports of this Service let no client in";

const OPEN: Gates = {};
const NONE: readonly string[] = [];

/**
 * A node that a load-balancer address is bound to reaches it with that address as its source, so where the node is
 * admitted these are as well.
 */
function loadBalancerGate(service: Service, family: IPFamily, nodeIP: string | undefined): AllowedSources | undefined {
  const ranges = service.loadBalancerSourceRanges.filter((range) => familyOf(range) === family);
  if (service.unreadableSourceRanges) return { ranges: NONE, addresses: NONE };
  if (ranges.length === 0) return undefined;
  const nodeIsIn = nodeIP !== undefined && ranges.some((range) => contains(range, nodeIP));
  const own = service.loadBalancerIPs.filter((ip) => familyOf(ip) === family);
  return { ranges: compact(ranges), addresses: nodeIsIn ? compact(own) : NONE };
}
