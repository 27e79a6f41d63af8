import { checkValue } from "../check.ts";
import { RuleTextError } from "../errors.ts";
import { rawArgs } from "../options.ts";
import type { RawModule } from "../raw.ts";
import type { IPFamily } from "../values.ts";
import { renderWords } from "../words.ts";
import { type AddrtypeMatch, addrtype } from "./addrtype.ts";
import { type CommentMatch, comment } from "./comment.ts";
import { type ConntrackMatch, conntrack } from "./conntrack.ts";
import { type IpvsMatch, ipvs } from "./ipvs.ts";
import type { MatchKind } from "./kind.ts";
import { type MarkMatch, mark } from "./mark.ts";
import { type NfacctMatch, nfacct } from "./nfacct.ts";
import { type PhysdevMatch, physdev } from "./physdev.ts";
import { type PortsMatch, sctp, type TCPMatch, tcp, udp } from "./ports.ts";
import { type RecentMatch, recent } from "./recent.ts";
import { type SetMatch, set } from "./set.ts";
import { type StatisticMatch, statistic } from "./statistic.ts";

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

/** One row for each kind. */
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
