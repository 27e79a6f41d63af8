/** All matches of iptables: the table of their kinds, and those without a row. */

import {
  type AddrtypeMatch,
  addrtype,
  type CommentMatch,
  type ConntrackMatch,
  comment,
  conntrack,
  type IpvsMatch,
  ipvs,
  type MarkMatch,
  type MatchKind,
  mark,
  type NfacctMatch,
  nfacct,
  type PhysdevMatch,
  type PortsMatch,
  physdev,
  type RecentMatch,
  recent,
  type SetMatch,
  type StatisticMatch,
  sctp,
  set,
  statistic,
  type TCPMatch,
  tcp,
  udp,
} from "./match-rows.ts";
import { type IPFamily, type RawModule, rawArgs } from "./options.ts";
import { checkValue, RuleTextError, renderWords } from "./values.ts";

type TypedMatch =
  | AddrtypeMatch
  | CommentMatch
  | ConntrackMatch
  | IpvsMatch
  | MarkMatch
  | NfacctMatch
  | PhysdevMatch
  | PortsMatch<"sctp">
  | PortsMatch<"udp">
  | RecentMatch
  | SetMatch
  | StatisticMatch
  | TCPMatch;

/** A match of a rule: one of those that have a type of their own, or another one with its words. */
export type Match =
  | TypedMatch
  /** A match this package has no type for, kept word for word; `args` are the arguments after `-m module`. */
  | { readonly kind: "unknown"; readonly module: string; readonly args: readonly string[] }
  /**
   * Stands for a whole rule of another program that can't be read: its text without `-A CHAIN `. It can't be written.
   */
  | { readonly kind: "unreadable"; readonly text: string };

type Kinds = { readonly [Kind in TypedMatch["kind"]]: MatchKind<Extract<TypedMatch, { readonly kind: Kind }>> };

const kinds: Kinds = {
  addrtype,
  comment,
  conntrack,
  ipvs,
  mark,
  nfacct,
  physdev,
  recent,
  sctp,
  set,
  statistic,
  tcp,
  udp,
};

interface Module {
  readonly kind: MatchKind<TypedMatch>;
  readonly options: ReadonlyMap<string, number>;
}

const modules: ReadonlyMap<string, Module> = new Map(
  Object.values(kinds).flatMap((kind) => {
    const options = new Map(Object.entries(kind.options));
    // Each reads what is of its own kind; which that is, the module's name says.
    return kind.modules.map((name) => [name, { kind: kind as unknown as MatchKind<TypedMatch>, options }] as const);
  }),
);

/** How many values each option of a module takes; undefined for a module without a type. */
export function matchOptions(module: string): ReadonlyMap<string, number> | undefined {
  return modules.get(module)?.options;
}

/**
 * The match in its type, or word for word where it has options that the type can't say.
 *
 * @throws Problem for values that iptables refuses
 */
export function parseMatch(raw: RawModule, family: IPFamily): Match {
  const typed = modules.get(raw.name)?.kind.parse(raw, family);
  return typed ?? { kind: "unknown", module: raw.name, args: rawArgs(raw) };
}

/**
 * ` -m module --option value`, with the leading space.
 *
 * @throws RuleTextError for values that could not be read back as the same
 */
export function renderMatch(match: Match): string {
  if (match.kind === "unknown") return ` -m ${checkValue("match", match.module)}${renderWords(match.args)}`;
  if (match.kind === "unreadable") {
    throw new RuleTextError("rule", match.text, "can't be written, as it could not be read");
  }
  // The row of a kind writes matches of that kind, which the type system can't follow.
  return (kinds[match.kind] as unknown as MatchKind<TypedMatch>).render(match);
}
