import { bracketed, inAnyOf, parseCIDR, socketText } from "@fairlead/base";
import { renderRule } from "@fairlead/netfilter";
import { ruleText } from "@fairlead/netfilter/nft";
import { type Environment, type Outcome, traceText, type Undecided, type Visit } from "@fairlead/trace";
import { type DemoMode, type DemoNode, rulesFor } from "./rules.ts";

/** Whose rules the packet meets: those that Fairlead makes of objects in a mode, or pasted ones. */
export type RulesOrigin = DemoMode | "pasted";

export interface Question {
  readonly origin: RulesOrigin;
  /** YAML of objects, or for pasted rules what iptables-save or nft printed. */
  readonly text: string;
  readonly node: DemoNode;
  /** An address. */
  readonly from: string;
  /** `10.96.0.10:80`, `[fd00::10]:80`. */
  readonly to: string;
  readonly protocol: string;
}

export interface Step {
  readonly hook: string;
  /** `nat KUBE-SERVICES 3`: the rule's place in its chain counts from 1. */
  readonly place: string;
  readonly rule: string;
}

/** One way through the rules. */
export interface Walk {
  /** 0 < share ≤ 1. */
  readonly share: number;
  readonly steps: readonly Step[];
  /** What has to be so for this way, of rules that cannot be decided. */
  readonly provided: readonly string[];
}

/** What may become of the packet. */
export interface End {
  /** Of all its walks. */
  readonly share: number;
  readonly text: string;
  /** Whether the packet arrives somewhere. Undefined: the tracer cannot say. */
  readonly arrives: boolean | undefined;
  /** The most probable first; nftables mode draws endpoints in several tries, each of which is one. */
  readonly walks: readonly Walk[];
}

export interface Answer {
  /** The most probable first. */
  readonly ends: readonly End[];
  /** The rules as text. */
  readonly rules: string;
  /** What was skipped of the objects. */
  readonly problems: readonly string[];
}

/**
 * Every way of the packet through the rules.
 *
 * @throws Error with a message for people: text that is not rules or YAML, a packet that cannot be
 */
export async function answer({ origin, text, node, from, to, protocol }: Question): Promise<Answer> {
  const environment = environmentOf(node);
  const family = from.includes(":") ? "IPv6" : "IPv4";
  const made = origin === "pasted" ? { text, problems: [] } : await rulesFor(text, origin, node, family);
  const { outcomes, undecided } = traceText(made.text, `${bracketed(from)}→${to}/${protocol}`, environment);
  const walks = [
    ...outcomes.map((outcome) => ({
      text: endOf(outcome),
      arrives: outcome.verdict === "accept",
      walk: walkOf(outcome),
    })),
    ...undecided.map((way) => ({ text: `unknown: ${way.problem.message}`, arrives: undefined, walk: walkOf(way) })),
  ];
  const ends = [...Map.groupBy(walks, ({ text }) => text).values()].flatMap(endsOf).sort(byShare);
  return { ends, rules: made.text, problems: made.problems };
}

const byShare = (one: { readonly share: number }, other: { readonly share: number }) => other.share - one.share;

/** Walks that end alike as one end. */
function endsOf(alike: readonly (Pick<End, "text" | "arrives"> & { readonly walk: Walk })[]): readonly End[] {
  const walks = alike.map(({ walk }) => walk).sort(byShare);
  const share = walks.reduce((sum, walk) => sum + walk.share, 0);
  return alike.slice(0, 1).map(({ text, arrives }) => ({ share, text, arrives, walks }));
}

/** Pods of the node are behind an interface of their own, everything else is behind eth0. */
function environmentOf({ addresses, podCIDRs }: DemoNode): Environment {
  const wrong = podCIDRs.find((cidr) => parseCIDR(cidr) === undefined);
  if (wrong !== undefined) throw new RangeError(`CIDRs of pods: ${wrong} must be a CIDR, such as 10.144.1.0/24`);
  const ofPod = inAnyOf(podCIDRs);
  return { localAddresses: addresses, outInterface: (address) => (ofPod(address) ? "veth0" : "eth0") };
}

function walkOf({ probability, visits, assumed = [] }: Outcome | Undecided): Walk {
  return {
    share: probability,
    steps: visits.map(stepOf),
    provided: assumed.map((rule) => `${placeOf(rule)} ${rule.matched ? "matches" : "does not match"}: ${rule.problem}`),
  };
}

function endOf({ verdict, rejectWith, destination, masqueraded }: Outcome): string {
  if (verdict !== "accept") return rejectWith === undefined ? verdict : `${verdict} with ${rejectWith}`;
  const { address, port } = destination;
  return `to ${port === undefined ? address : socketText(address, port)}${masqueraded ? ", masqueraded" : ""}`;
}

function stepOf(visit: Visit): Step {
  const rule = "nft" in visit ? ruleText(visit.nft.rule, visit.nft.table) : renderRule(visit.rule);
  return { hook: visit.hook, place: placeOf(visit), rule };
}

const placeOf = ({ table, chain, index }: Visit) => `${table} ${chain} ${index + 1}`;
