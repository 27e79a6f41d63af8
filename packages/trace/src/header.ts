import { type AddressWords, inRange } from "@fairlead/base";
import type { NameMatch } from "@fairlead/netfilter";
import type { CompiledAddress } from "./compile.ts";
import { outInterface } from "./route.ts";
import { type RuleContext, undecidable } from "./rule-context.ts";

/** Whether addresses, interfaces and protocol match: the kernel asks them before all else (ip_packet_match). */
export function matchesHeader(place: RuleContext): boolean {
  const { walk, rule } = place;
  return (
    matchesAddress(rule.destination, walk.destination.words) &&
    matchesAddress(rule.source, walk.source.words) &&
    matchesProtocol(rule.rule.protocol, walk.protocol) &&
    matchesInterface(rule.rule.inInterface, walk.inInterface) &&
    matchesOutInterface(place) &&
    // Packets here are whole: connection tracking puts fragments together before any table.
    rule.rule.fragment?.negated !== false
  );
}

function matchesAddress(match: CompiledAddress | undefined, address: AddressWords): boolean {
  return match === undefined || inRange(match.range, address) !== match.negated;
}

function matchesProtocol(match: NameMatch | undefined, protocol: string): boolean {
  return match === undefined || (match.value === protocol) !== (match.negated === true);
}

/** A trailing + stands for any rest. */
function matchesInterface(match: NameMatch | undefined, name: string): boolean {
  if (match === undefined) return true;
  const { value } = match;
  const equal = value.endsWith("+") ? name.startsWith(value.slice(0, -1)) : name === value;
  return equal !== (match.negated === true);
}

function matchesOutInterface(place: RuleContext): boolean {
  const match = place.rule.rule.outInterface;
  if (match === undefined) return true;
  const name = outInterface(place.walk, place.host);
  if (name === undefined) throw undecidable(place, "the outgoing interface is not known");
  return matchesInterface(match, name);
}
