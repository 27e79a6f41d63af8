import { socketText } from "@fairlead/base";
import type { IPFamily } from "@fairlead/core";
import { addressOf, type Host } from "../addresses.ts";

/** The proxy modes, as `--proxy-mode` names them. */
export type Mode = "iptables" | "ipvs" | "nftables";

export const MODES: readonly Mode[] = ["iptables", "ipvs", "nftables"];

/** One place where a packet can end. */
export interface Landing {
  /** `10.144.1.5:8080`, `[fd00:144::1:5]:8080` */
  readonly endpoint: string;
  /** 0…1; those of one packet add up to 1, with what is refused. */
  readonly probability: number;
  /** The endpoint sees the node as the sender. */
  readonly masqueraded: boolean;
}

/** What becomes of a packet. */
export type Outcome =
  | {
      readonly verdict: "endpoints";
      readonly landings: readonly Landing[];
      /** With which probability it is answered as by `reject`; absent: never. */
      readonly refused?: number;
    }
  /** Answered with ICMP port unreachable. */
  | { readonly verdict: "reject" }
  | { readonly verdict: "drop" }
  /** Goes its way as if there were no proxy: destination and source are as sent. */
  | { readonly verdict: "leave" }
  /** ipvs: reaches a virtual server without destinations. */
  | { readonly verdict: "empty" };

/** No outcome is asked for, and why. */
export interface Skip {
  readonly skip: string;
}

export type Expected = Readonly<Record<Mode, Outcome | Skip>>;

export const REJECT: Outcome = { verdict: "reject" };
export const DROP: Outcome = { verdict: "drop" };
export const LEAVE: Outcome = { verdict: "leave" };
export const EMPTY: Outcome = { verdict: "empty" };

export function skip(reason: string): Skip {
  return { skip: reason };
}

export interface SpreadOptions {
  /** Default IPv4. */
  readonly family?: IPFamily;
  /** Default 8080. */
  readonly port?: number;
}

/** Evenly to each of the hosts, which see the sender's own address, but for one that calls itself. */
export function plain(to: readonly Host[], options: SpreadOptions & { readonly from?: Host } = {}): Outcome {
  return spread(to, options, (host) => host === options.from);
}

/** Evenly to each of the hosts, which see the node as the sender. */
export function masqueraded(to: readonly Host[], options: SpreadOptions = {}): Outcome {
  return spread(to, options, () => true);
}

function spread(to: readonly Host[], options: SpreadOptions, masquerade: (host: Host) => boolean): Outcome {
  const { family = "IPv4", port = 8080 } = options;
  const landings = to.map((host) => ({
    endpoint: socketText(addressOf(host, family), port),
    probability: 1 / to.length,
    masqueraded: masquerade(host),
  }));
  return { verdict: "endpoints", landings };
}

/**
 * By weights, which add up to 1 with what is refused.
 *
 * @param outcome evenly to the same hosts
 */
export function weighted(outcome: Outcome, ...probabilities: readonly number[]): Outcome {
  if (outcome.verdict !== "endpoints") return outcome;
  const landings = outcome.landings.map((landing, at) => ({ ...landing, probability: probabilities[at] ?? 0 }));
  const [refused] = probabilities.slice(landings.length);
  return { verdict: "endpoints", landings, ...(refused !== undefined && { refused }) };
}

export function everyMode(outcome: Outcome): Expected {
  return { iptables: outcome, ipvs: outcome, nftables: outcome };
}

/** iptables and nftables alike, and ipvs on its own. */
export function exceptIpvs(outcome: Outcome, ipvs: Outcome | Skip): Expected {
  return { iptables: outcome, nftables: outcome, ipvs };
}

/** iptables on its own. */
export function exceptIptables(iptables: Outcome | Skip, others: Outcome | Skip): Expected {
  return { iptables, ipvs: others, nftables: others };
}

/** Without any endpoint: REJECT, where ipvs has an empty virtual server. */
export const noEndpoints: Expected = exceptIpvs(REJECT, EMPTY);
