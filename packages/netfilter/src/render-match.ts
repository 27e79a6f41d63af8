import { checkInteger, checkName, checkValue } from "./check.ts";
import { RuleTextError } from "./errors.ts";
import { quoteComment } from "./quote.ts";
import { renderWords } from "./render-words.ts";
import type { Match, NameMatch, PortMatch } from "./rule.ts";

type MatchOf<Kind extends Match["kind"]> = Extract<Match, { readonly kind: Kind }>;

/** ` -m module --option value`, with the leading space. */
export function renderMatch(match: Match): string {
  switch (match.kind) {
    case "comment":
      return ` -m comment --comment ${quoteComment(match.text)}`;
    case "tcp":
    case "udp":
    case "sctp":
      return ` -m ${match.kind}${renderPort("--sport", match.sport)}${renderPort("--dport", match.dport)}`;
    case "conntrack":
      return match.module === "state"
        ? ` -m state${not(match)} --state ${renderStates(match.states)}`
        : ` -m conntrack${not(match)} --ctstate ${renderStates(match.states)}`;
    case "mark":
      return ` -m mark${not(match)} --mark ${renderMark(match.value, match.mask)}`;
    case "addrtype":
      return ` -m addrtype${renderType("--src-type", match.srcType)}${renderType("--dst-type", match.dstType)}`;
    case "statistic":
      return ` -m statistic --mode random --probability ${renderProbability(match.probability)}`;
    case "recent":
      return renderRecent(match);
    case "nfacct":
      // Two spaces: iptables-save prints them.
      return ` -m nfacct --nfacct-name  ${checkName("nfacct", match.name)}`;
    case "set":
      return ` -m set${not(match)} --match-set ${checkName("set", match.name)} ${renderFlags(match.flags)}`;
    case "physdev":
      return ` -m physdev${not(match)} --physdev-is-${checkValue("physdev", match.is)}`;
    case "ipvs":
      return renderIpvs(match);
    case "unknown":
      return ` -m ${checkValue("match", match.module)}${renderWords(match.args)}`;
    case "unreadable":
      throw new RuleTextError("rule", match.text, "can't be written, as it could not be read");
  }
}

/** `0x4000/0x4000`; the full mask is left out, as -m mark does. */
function renderMark(value: number, mask: number): string {
  return mask === 0xffffffff ? hex("mark", value) : `${hex("mark", value)}/${hex("mask", mask)}`;
}

export function hex(field: string, value: number): string {
  return `0x${checkInteger(field, value, 0xffffffff).toString(16)}`;
}

function not(match: { readonly negated?: boolean }): string {
  return match.negated === true ? " !" : "";
}

function renderPort(option: string, port: PortMatch | undefined): string {
  if (port === undefined) return "";
  const from = checkInteger("port", port.from, 0xffff);
  const to = checkInteger("port", port.to, 0xffff);
  if (to < from) throw new RuleTextError("port", `${from}:${to}`, "must not end before it begins");
  return `${not(port)} ${option} ${from === to ? from : `${from}:${to}`}`;
}

function renderType(option: string, type: NameMatch | undefined): string {
  return type === undefined ? "" : `${not(type)} ${option} ${checkValue("address type", type.value)}`;
}

function renderStates(states: readonly string[]): string {
  return checkValue("state", states.join(","));
}

function renderFlags(flags: readonly string[]): string {
  return checkValue("set flags", flags.join(","));
}

function renderProbability(probability: string): string {
  if (!/^(?:0|1)(?:\.\d+)?$/.test(probability)) {
    throw new RuleTextError("probability", probability, "must be a decimal from 0 to 1");
  }
  return probability;
}

function renderRecent(match: MatchOf<"recent">): string {
  const seconds = match.seconds === undefined ? "" : ` --seconds ${checkInteger("seconds", match.seconds, 0xffffffff)}`;
  const reap = match.reap === true ? " --reap" : "";
  const mask = match.mask === undefined ? "" : ` --mask ${checkValue("mask", match.mask)}`;
  return ` -m recent --${match.op}${seconds}${reap} --name ${checkName("recent", match.name)}${mask} --${match.side}`;
}

const IPVS_PROTOCOLS = { tcp: 6, udp: 17, sctp: 132 } as const;

/** In the order and with the numbers that iptables-save prints. */
function renderIpvs({ protocol, address, port }: MatchOf<"ipvs">): string {
  const number = IPVS_PROTOCOLS[protocol];
  return ` -m ipvs --vproto ${number} --vaddr ${checkValue("address", address)} --vport ${checkInteger("port", port, 0xffff)}`;
}
