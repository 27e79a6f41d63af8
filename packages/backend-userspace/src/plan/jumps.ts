import { hostCIDR } from "@fairlead/base";
import { comment, isWritable, jump, type Match, type Rule } from "@fairlead/netfilter";
import { OWN_CHAINS, type RuleTable } from "./chains.ts";
import type { RenderContext } from "./context.ts";
import {
  EXTERNAL_SERVICES,
  NODEPORT_CONTAINER,
  NODEPORT_HOST,
  NODEPORT_NON_LOCAL,
  PORTALS_CONTAINER,
  PORTALS_HOST,
  PROXY_FIREWALL,
  SERVICES,
} from "./names.ts";

/** The rules of a built-in chain that lead to ours: some at its top, some at its end. */
export interface Jumps {
  readonly table: RuleTable;
  readonly chain: string;
  readonly first: readonly Rule[];
  readonly last: readonly Rule[];
}

const NEW: Match = { kind: "conntrack", states: ["NEW"] };
const PORTALS = comment("handle ClusterIPs; NOTE: this must be before the NodePort rules");
const NODE_PORTS = comment("handle service NodePorts; NOTE: this must be the last rule in the chain");

const toRelays = to(NODEPORT_NON_LOCAL, comment("Ensure that non-local NodePort traffic can flow"));
// These three are word for word iptables mode's, so that either mode finds the other's in their place.
const toFirewall = to(PROXY_FIREWALL, NEW, comment("kubernetes load balancer firewall"));
const toServices = to(SERVICES, NEW, comment("kubernetes service portals"));
const toExternal = to(EXTERNAL_SERVICES, NEW, comment("kubernetes externally-visible service portals"));

export function jumps(context: RenderContext): readonly Jumps[] {
  return [
    { table: "filter", chain: "INPUT", first: [toFirewall, toRelays, toExternal], last: [] },
    { table: "filter", chain: "FORWARD", first: [toFirewall, toServices, toExternal], last: [] },
    { table: "filter", chain: "OUTPUT", first: [toFirewall, toServices], last: [] },
    {
      table: "nat",
      chain: "PREROUTING",
      first: [to(PORTALS_CONTAINER, PORTALS)],
      last: toNodePorts(NODEPORT_CONTAINER, context),
    },
    { table: "nat", chain: "OUTPUT", first: [to(PORTALS_HOST, PORTALS)], last: toNodePorts(NODEPORT_HOST, context) },
  ];
}

function to(chain: string, ...matches: readonly Match[]): Rule {
  return { matches, target: jump(chain) };
}

/** Asked last, as any address of the node's own would lead there. */
function toNodePorts(chain: string, context: RenderContext): readonly Rule[] {
  const { nodePortAddresses } = context.node;
  const target = jump(chain);
  if (nodePortAddresses.kind === "list") {
    return nodePortAddresses.addresses
      .filter((address) => servesLoopback(context) || !isLoopback(address))
      .map((address) => ({ destination: { cidr: hostCIDR(address) }, matches: [NODE_PORTS], target }));
  }
  const matches: readonly Match[] = [{ kind: "addrtype", dstType: { value: "LOCAL" } }, NODE_PORTS];
  if (servesLoopback(context)) return [{ matches, target }];
  const cidr = context.family === "IPv4" ? "127.0.0.0/8" : "::1/128";
  return [{ destination: { negated: true, cidr }, matches, target }];
}

function servesLoopback({ family, localhostNodePorts }: RenderContext): boolean {
  return family === "IPv4" && localhostNodePorts;
}

function isLoopback(address: string): boolean {
  return address.startsWith("127.") || address === "::1";
}

/**
 * Jumps of any form to chains that only this mode has, such as those to node-port addresses that are gone. Not those of
 * another program whose text can't be written, and so not be named to be deleted.
 */
export function leadsToOwn(rule: Rule, table: RuleTable): boolean {
  const { target } = rule;
  return target?.kind === "jump" && OWN_CHAINS[table].includes(target.chain) && isWritable(rule);
}
