import { parseAddress } from "@fairlead/base";
import type { Table, Target } from "@fairlead/netfilter";
import { type Host, LOOPBACK_ADDRESS } from "./host.ts";
import { type RuleContext, undecidable } from "./matches.ts";
import type { Hook } from "./packet.ts";
import { outInterface } from "./route.ts";
import { ACCEPT, NEXT, type RuleVerdict, side, type Walk } from "./walk.ts";

type TargetOf<Kind extends Target["kind"]> = Extract<Target, { readonly kind: Kind }>;

/**
 * Carries out the target on the walk: translation, masquerade and mark change it.
 *
 * @throws TraceError for a target that the tracer doesn't know, or one where the kernel would refuse it
 */
export function applyTarget(target: Target, place: RuleContext): RuleVerdict {
  switch (target.kind) {
    case "accept":
    case "drop":
    case "return":
      return { kind: target.kind };
    case "jump":
    case "goto":
      return { kind: "call", chain: target.chain, goto: target.kind === "goto" };
    case "reject":
      return reject(target, place);
    case "mark":
      place.walk.mark = ((place.walk.mark & ~target.mask) ^ target.value) >>> 0;
      return NEXT;
    case "dnat":
      return dnat(target, place);
    case "redirect":
      return redirect(target, place);
    case "masquerade":
      return masquerade(place);
    case "unknown":
      return applyOther(target, place);
  }
}

/** The kernel loads these targets nowhere else. */
function demand(place: RuleContext, name: string, table: Table, hooks: readonly Hook[]): void {
  if (place.chain.table === table && hooks.includes(place.walk.hook)) return;
  throw undecidable(place, `${name} is only valid in table ${table} at ${hooks.join(", ")}`);
}

function reject(target: TargetOf<"reject">, place: RuleContext): RuleVerdict {
  demand(place, "REJECT", "filter", ["INPUT", "FORWARD", "OUTPUT"]);
  return { kind: "reject", with: target.with };
}

/** `address`, `address:port`, `[address]:port` or `:port`; ranges are a choice that only the kernel can make. */
const DESTINATION = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*))?(?::(\d+))?$/;

function dnat(target: TargetOf<"dnat">, place: RuleContext): RuleVerdict {
  demand(place, "DNAT", "nat", ["PREROUTING", "OUTPUT"]);
  if (target.to.includes("-")) throw undecidable(place, `the tracer cannot decide which of ${target.to} DNAT takes`);
  const [, bracketed, bare, port] = DESTINATION.exec(target.to) ?? [];
  const address = bracketed ?? bare;
  if ((address === undefined && port === undefined) || (address !== undefined && parseAddress(address) === undefined)) {
    throw undecidable(place, `DNAT needs an address or a port, not "${target.to}"`);
  }
  translate(place.walk, address, port === undefined ? undefined : Number(port));
  return ACCEPT;
}

function redirect(target: TargetOf<"redirect">, place: RuleContext): RuleVerdict {
  demand(place, "REDIRECT", "nat", ["PREROUTING", "OUTPUT"]);
  if (target.toPorts?.includes("-") === true) {
    throw undecidable(place, `the tracer cannot decide which of the ports ${target.toPorts} REDIRECT takes`);
  }
  const { walk, host } = place;
  const arrival = () => host.environment.redirectAddress?.(walk.inInterface) ?? host.ownAddress();
  const own = walk.hook === "OUTPUT" ? LOOPBACK_ADDRESS[walk.family] : arrival();
  if (own === undefined) throw undecidable(place, "the environment has no local address that REDIRECT could take");
  translate(walk, own, target.toPorts === undefined ? undefined : Number(target.toPorts));
  walk.redirected = true;
  return ACCEPT;
}

export function translate(walk: Walk, address: string | undefined, port: number | undefined): void {
  walk.destination = side(address ?? walk.destination.address, port ?? walk.destination.port);
  walk.translated = true;
  walk.bound = true;
}

/** SNAT to one address; its ranges are a choice that only the kernel can make. */
const SOURCE = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+|[0-9a-fA-F:]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*))(?::[\d-]+)?$/;

/** Writes down what it sees and lets the packet on. */
const ONLOOKERS: ReadonlySet<string> = new Set([
  "LOG",
  "NFLOG",
  "ULOG",
  "TRACE",
  "AUDIT",
  "LED",
  "RATEEST",
  "IDLETIMER",
]);

/** Changes what no rule here asks for: size, class and time to live of the packet. */
const RETOUCHES: ReadonlySet<string> = new Set([
  "CHECKSUM",
  "CLASSIFY",
  "DSCP",
  "ECN",
  "HL",
  "SECMARK",
  "TCPMSS",
  "TOS",
  "TTL",
]);

/** Whether it makes no difference to the packet's way that the rule matches. */
export function isNeutral(target: Target | undefined): boolean {
  if (target === undefined) return true;
  return target.kind === "unknown" && (ONLOOKERS.has(target.name) || RETOUCHES.has(target.name));
}

function applyOther(target: TargetOf<"unknown">, place: RuleContext): RuleVerdict {
  if (isNeutral(target)) return NEXT;
  const { name, args } = target;
  if (name === "NOTRACK" || (name === "CT" && args.join(" ") === "--notrack")) {
    demand(place, name, "raw", ["PREROUTING", "OUTPUT"]);
    place.walk.state = "UNTRACKED";
    return NEXT;
  }
  const [option, to = "", ...more] = args;
  if (name === "SNAT" && option === "--to-source" && more.every((word) => word.startsWith("--")))
    return snat(to, place);
  throw undecidable(place, `the tracer does not know the target ${name}, at least with these options`);
}

function snat(to: string, place: RuleContext): RuleVerdict {
  demand(place, "SNAT", "nat", ["POSTROUTING", "INPUT"]);
  const [, bracketed, bare] = SOURCE.exec(to) ?? [];
  const address = bracketed ?? bare ?? "";
  if (parseAddress(address) === undefined)
    throw undecidable(place, `the tracer cannot decide which of ${to} SNAT takes`);
  place.walk.source = side(address, place.walk.source.port);
  place.walk.masqueraded = true;
  place.walk.bound = true;
  return ACCEPT;
}

function masquerade(place: RuleContext): RuleVerdict {
  demand(place, "MASQUERADE", "nat", ["POSTROUTING"]);
  masqueradeWalk(place.walk, place.host);
  return ACCEPT;
}

/** The new source port is the kernel's choice; the packet keeps its own here. */
export function masqueradeWalk(walk: Walk, host: Host): void {
  const name = outInterface(walk, host);
  const own = host.environment.masqueradeAddress?.(name) ?? (name === "lo" ? undefined : host.ownAddress());
  if (own !== undefined) walk.source = side(own, walk.source.port);
  walk.masqueraded = true;
  walk.bound = true;
}
