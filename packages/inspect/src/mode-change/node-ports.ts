import { familyOf, IP_FAMILIES, isLoopback } from "@fairlead/base";
import { FRONTEND_KINDS, type IPFamily, type NodePortAddresses } from "@fairlead/core";
import { type ModeFinding, sortedServices } from "./finding.ts";
import { hasTables, type ModeChange, type ModeSide } from "./sides.ts";

/** Node ports that are no longer, or only then, served on some of the node's addresses; loopback apart. */
export function nodePortFindings(change: ModeChange): readonly ModeFinding[] {
  return IP_FAMILIES.flatMap((family) => familyFindings(family, change));
}

function familyFindings(family: IPFamily, { before, after, seen }: ModeChange): readonly ModeFinding[] {
  const services = nodePortServices(family, before);
  const [was, is] = [servedAt(family, before), servedAt(family, after)];
  if (services.length === 0 || JSON.stringify(was) === JSON.stringify(is)) return [];
  const own = seen.addresses?.filter((address) => familyOf(address) === family && !isLocal(address));
  const topic = `node ports, ${family}`;
  const where = own === undefined ? undefined : own.filter((address) => lets(was, address) && !lets(is, address));
  const ports = `node ports of ${services.length} ${services.length === 1 ? "service" : "services"}`;
  if (where?.length === 0 && own?.every((address) => lets(was, address) || !lets(is, address))) {
    return [{ topic, state: "fits", found: `served at ${placesText(is)}, which is every address of the node` }];
  }
  const lost = where === undefined ? "" : `; no longer at ${where.join(", ")}`;
  const found = `${ports} are served at ${placesText(was)} now, and then at ${placesText(is)}${where?.length === 0 ? "" : lost}`;
  const keep = isSet(after) ? {} : { advice: KEEP };
  return [{ topic, state: "differs", found, ...(hasTables(after) ? keep : {}), services }];
}

const KEEP = "to keep them set nodePortAddresses: [all], or the CIDRs whose addresses are to serve them";

function isSet({ config }: ModeSide): boolean {
  return config.provenance["nodePortAddresses"] !== undefined;
}

/** Services with a node port, in that family. */
export function nodePortServices(family: IPFamily, { planned }: ModeSide) {
  const groups = [...planned.planner.plan(family).groups.values()];
  const having = groups.filter(({ frontends }) =>
    frontends.some(({ kind }) => FRONTEND_KINDS[kind].at === "node-port"),
  );
  return sortedServices(having.map(({ service }) => service));
}

function servedAt(family: IPFamily, { planned }: ModeSide): NodePortAddresses {
  const { nodePortAddresses } = planned.planner.plan(family).node;
  if (nodePortAddresses.kind === "all") return nodePortAddresses;
  return { kind: "list", addresses: nodePortAddresses.addresses.filter((address) => !isLocal(address)) };
}

function lets(at: NodePortAddresses, address: string): boolean {
  return at.kind === "all" || at.addresses.includes(address);
}

function placesText(at: NodePortAddresses): string {
  if (at.kind === "all") return "all addresses of the node";
  return at.addresses.length === 0 ? "none of its addresses" : at.addresses.join(", ");
}

function isLocal(address: string): boolean {
  return isLoopback(address) || address.startsWith("fe80:");
}
