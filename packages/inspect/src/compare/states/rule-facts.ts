import { type ChainState, canonicalCIDR, type Rule, renderRule, type SavedChain } from "@fairlead/netfilter";

/** Where a packet is on its way to. */
export interface Heading {
  /** Canonical. */
  readonly address: string;
  readonly port: number;
}

/** What of a rule decides whether a packet may match it, and where it leads. */
export interface RuleFacts {
  readonly index: number;
  readonly text: string;
  readonly protocol: string | undefined;
  /** The one address that it is for; undefined: it may be for any. */
  readonly host: string | undefined;
  /** Likewise. */
  readonly port: number | undefined;
  /** The chain that it jumps or goes to. */
  readonly chain: string | undefined;
  /** Where it translates the destination to, port 0 where it leaves that; "unknown": to something else. */
  readonly to: Heading | "unknown" | undefined;
}

export function rulesOf(chain: ChainState | SavedChain): readonly RuleFacts[] {
  const texts = "texts" in chain ? chain.texts : chain.rules.map(renderRule);
  return chain.rules.map((rule, index) => ({
    index,
    text: texts[index] ?? "",
    protocol: rule.protocol?.negated === true ? undefined : rule.protocol?.value,
    host: hostOf(rule),
    port: portOf(rule),
    chain: rule.target !== undefined && "chain" in rule.target ? rule.target.chain : undefined,
    to: translationOf(rule),
  }));
}

const PROTOCOLS: ReadonlySet<string> = new Set(["tcp", "udp", "sctp"]);

/** Whether a packet of this protocol to that place may match; without a doubt not, if false. */
export function mayMatch(rule: RuleFacts, protocol: string, { address, port }: Heading): boolean {
  if (rule.protocol !== undefined && PROTOCOLS.has(rule.protocol) && rule.protocol !== protocol) return false;
  return (rule.host ?? address) === address && (rule.port ?? port) === port;
}

const HOST_LENGTH = /\/(?:32|128)$/;

function hostOf({ destination }: Rule): string | undefined {
  if (destination === undefined || destination.negated || !HOST_LENGTH.test(destination.cidr)) return undefined;
  return destination.cidr.replace(HOST_LENGTH, "");
}

function portOf({ matches }: Rule): number | undefined {
  const single = matches.flatMap((match) => {
    if (!("dport" in match) || match.dport === undefined) return [];
    const { negated, from, to } = match.dport;
    return negated || from !== to ? [] : [from];
  });
  return single[0];
}

const PLACE = /^(?:\[(?<six>[\da-f:.]+)\]|(?<four>[\d.]+))(?::(?<port>\d+))?$/;

function translationOf({ target }: Rule): RuleFacts["to"] {
  if (target?.kind === "redirect") return "unknown";
  if (target?.kind !== "dnat") return undefined;
  const { six, four, port = "0" } = PLACE.exec(target.to)?.groups ?? {};
  const address = six ?? four;
  if (address === undefined) return "unknown";
  return { address: canonicalCIDR(address).replace(HOST_LENGTH, ""), port: Number(port) };
}
