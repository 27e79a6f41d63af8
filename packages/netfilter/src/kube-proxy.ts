/**
 * What the iptables and IPVS backends share with kube-proxy: names of chains, jumps to them, their removal, and which
 * packets come from pods.
 */

import type { IPFamily } from "@fairlead/base";
import { sha256 } from "#sha256";
import type { AddressMatch, Command, NameMatch, Rule, Table, TableState } from "./rule/rule.ts";
import { ruleKey } from "./text/compare.ts";

/** Text in pieces of some whole lines each, rendered while a tool reads it. */
export type Payload = Iterable<string> | AsyncIterable<string>;

/** What the kernel says of a table without its rules. */
export interface TableGlance {
  /** Another text after a change; of a large legacy table after one of the number or size of its rules. */
  readonly state: string;
  /** At least as many as the table has rules, and some more for each chain. */
  readonly entries?: number;
}

/**
 * The iptables of one IP family as a proxy needs it. `@fairlead/kernel` has the client and the fake; a backend declares
 * the part that it uses (`Pick`) and imports neither.
 */
export interface IptablesPort {
  /** iptables or ip6tables. */
  readonly family: IPFamily;
  /** Which kernel API the tools speak to (nf_tables or x_tables): it decides how large one transaction may be. */
  readonly variant: "nft" | "legacy";
  /**
   * One `iptables-restore --noflush --counters`. The payload is read while it is made, so that one of many megabytes
   * neither stands in memory nor holds the event loop; each of its `*table … COMMIT` sections is one transaction,
   * carried out in order, and the same table may come more than once. A payload that throws half way ends the process
   * without the COMMIT that is still out.
   *
   * @throws an Error whose `cause` carries argv, exit code and stderr; the sections before the one that failed count,
   * its table is as it was
   */
  restore(payload: Payload): Promise<void>;
  /** `iptables-save -t TABLE`, parsed; a table that does not exist has its built-in chains only. */
  save(table: Table): Promise<TableState>;
  /** The same of several tables, with one process. */
  saveTables(tables: readonly Table[]): Promise<ReadonlyMap<Table, TableState>>;
  /** `iptables-save -t TABLE` line by line as it comes: of a large table no more is kept than the reader needs. */
  saveLines(table: Table): AsyncIterable<string>;
  /** The names of the table's chains, built-in ones included (`iptables-save` read as a stream; rules are not kept). */
  chains(table: Table): Promise<ReadonlySet<string>>;
  /**
   * `iptables -t TABLE -S CHAIN [NUMBER]`: the chain's rules, or the one with that number (from 1, no rule beyond the
   * last). Undefined: there is no such chain.
   */
  list(table: Table, chain: string, number?: number): Promise<readonly Rule[] | undefined>;
  /**
   * The rules of several chains as `iptables -S` prints them, without `-A CHAIN `, with one process. A chain that is
   * not there is absent.
   */
  texts(table: Table, chains: readonly string[]): Promise<ReadonlyMap<string, readonly string[]>>;
  /**
   * Whether rules went since it was last asked that this port has not taken away itself; of these chains only where
   * the kernel distinguishes them. Takes no time worth mentioning. Absent: the kernel cannot be asked.
   */
  readonly lost?: (chains: Readonly<Partial<Record<Table, readonly string[]>>>) => Promise<boolean>;
  /** Takes no time worth mentioning, however large the table is. Undefined, or absent: the kernel cannot be asked. */
  readonly glance?: (table: Table) => Promise<TableGlance | undefined>;
}

/** What a service's chain is for: its endpoints, those of this node, its external traffic, its firewall. */
export type ServiceChainKind = "SVC" | "SVL" | "EXT" | "FW";

/**
 * `prefix` and the first 16 characters of base32(sha256(text)), as kube-proxy names its chains. With a prefix of 12
 * characters it fills what a chain name may have.
 */
export function hashedName(prefix: string, text: string): string {
  const bytes = sha256(text);
  return prefix + base32(bytes, 0) + base32(bytes, 5);
}

/**
 * Chain of a service port: KUBE-SVC- (cluster set), KUBE-SVL- (local set), KUBE-EXT- (external traffic), KUBE-FW-
 * (source ranges). The same in both IP families.
 *
 * @param name `namespace/name:port`, without the colon where the port has no name
 * @param protocol tcp, udp or sctp, in any case
 */
export function servicePortChainName(kind: ServiceChainKind, name: string, protocol: string): string {
  return hashedName(`KUBE-${kind}-`, name + protocol.toLowerCase());
}

/**
 * KUBE-SEP- chain of an endpoint of a service port.
 *
 * @param endpoint `address:port`, for IPv6 `[address]:port`: the chain of an IPv6 endpoint thus differs
 */
export function endpointChainName(name: string, protocol: string, endpoint: string): string {
  return hashedName("KUBE-SEP-", name + protocol.toLowerCase() + endpoint);
}

/**
 * Whether a chain is one of a service port or an endpoint by its name, of Fairlead or of any kube-proxy: before 1.24 it
 * had KUBE-XLB- for external traffic.
 */
export function isServiceChain(chain: string): boolean {
  return /^KUBE-(?:FW|EXT|XLB|SVC|SVL|SEP)-/.test(chain);
}

/** How packets of this node's pods are recognized by where they come from. */
export type PodDetector =
  | { readonly kind: "none" }
  | { readonly kind: "cidrs"; readonly cidrs: readonly string[] }
  | { readonly kind: "bridge"; readonly interface: string }
  | { readonly kind: "interface-prefix"; readonly prefix: string };

/** The part of a rule that says where a packet comes from. */
export type PacketOrigin = { readonly source: AddressMatch } | { readonly inInterface: NameMatch };

/** Whether pods can be distinguished at all. */
export function detectsPods(detector: PodDetector): boolean {
  return fromPods(detector).length > 0;
}

/** What matches packets of pods: one entry for each rule that it takes. */
export function fromPods(detector: PodDetector): readonly PacketOrigin[] {
  switch (detector.kind) {
    case "none":
      return [];
    case "cidrs":
      return detector.cidrs.map((cidr) => ({ source: { cidr } }));
    case "bridge":
      return [{ inInterface: { value: detector.interface } }];
    case "interface-prefix":
      return [{ inInterface: { value: `${detector.prefix}+` } }];
  }
}

/**
 * What matches packets that are not of pods, as one rule; undefined where iptables cannot say it in one, which is when
 * there are several CIDRs to negate, or nothing to recognize pods by.
 */
export function notFromPods(detector: PodDetector): PacketOrigin | undefined {
  const [only, ...others] = fromPods(detector);
  if (only === undefined || others.length > 0) return undefined;
  return "source" in only
    ? { source: { negated: true, cidr: only.source.cidr } }
    : { inInterface: { negated: true, value: only.inInterface.value } };
}

/** The rules of a built-in chain that lead to a proxy's chains. */
export interface JumpRules {
  /** Those that stand together, in their order, where the first of them stood, or at the chain's top. */
  readonly first: readonly Rule[];
  /** Those at the chain's end. Default: there are none. */
  readonly last?: readonly Rule[];
  /** Other rules that must not stand in the chain. Default: no rule. */
  readonly isUnwanted?: (rule: Rule) => boolean;
}

/**
 * Makes the jumps stand once and in their order in a built-in chain, and unwanted rules not at all. Where it is so
 * already, nothing is touched, whatever others have put between and around them; else all copies go and come back.
 */
export function repairJumps(
  chain: string,
  { first, last = [], isUnwanted = () => false }: JumpRules,
  existing: readonly Rule[],
): readonly Command[] {
  const wanted = [...first, ...last].map(ruleKey);
  const present = existing.map((rule) => ({ rule, key: ruleKey(rule) }));
  const ours = present.filter(({ rule, key }) => wanted.includes(key) || isUnwanted(rule));
  if (ours.map(({ key }) => key).join("\n") === wanted.join("\n")) return [];
  const anchor = ours.find(({ key }) => wanted.indexOf(key) < first.length && wanted.includes(key));
  // Those of ours before it are gone by then.
  const position = anchor === undefined ? 1 : present.indexOf(anchor) - ours.indexOf(anchor) + 1;
  return [
    ...ours.map(({ rule }): Command => ({ kind: "delete", chain, rule })),
    ...first.map((rule, index): Command => ({ kind: "insert", chain, position: position + index, rule })),
    ...last.map((rule): Command => ({ kind: "append", chain, rule })),
  ];
}

/** How the chains of a mode are removed. */
export interface CleanupOptions {
  /** Chains that another mode uses under the same name and that stay, with the jumps to them. Default: none. */
  readonly keep?: (table: Table, chain: string) => boolean;
}

/** What leads from a built-in chain to chains that go. */
export interface Links {
  /** The table of the chain. */
  readonly table: Table;
  /** The built-in chain. */
  readonly chain: string;
  /** Whether a rule of it is such a link. */
  readonly isLink: (rule: Rule) => boolean;
}

/** Whether a rule jumps to one of some chains. */
export function leadsToOne(chains: readonly string[]): (rule: Rule) => boolean {
  return ({ target }) => target?.kind === "jump" && chains.includes(target.chain);
}

/** Takes every copy of the links out of their built-in chains. */
export async function unlinkCommands(port: Pick<IptablesPort, "list">, links: Iterable<Links>): Promise<Command[]> {
  const commands: Command[] = [];
  for (const { table, chain, isLink } of links) {
    for (const rule of (await port.list(table, chain)) ?? []) {
      if (isLink(rule)) commands.push({ kind: "delete", chain, rule });
    }
  }
  return commands;
}

/** `:CHAIN - [0:0]`: makes the chain, or empties it where it exists. */
export function emptyChain(chain: string): Command {
  return { kind: "chain", chain };
}

/** Deletes chains that nothing else refers to. They are emptied first, so they may refer to one another. */
export function* deleteChains(chains: readonly string[]): Generator<Command> {
  for (const chain of chains) yield emptyChain(chain);
  for (const chain of chains) yield { kind: "delete-chain", chain };
}

/**
 * Writes rules and checks by the kernel's generation that the tool did: one that ends with exit code 0 and has written
 * nothing would leave a new service unserved without a word. On the legacy variant, where the same rules may have been
 * there before, the next check of the rules finds it.
 *
 * @param changes whether what was written cannot leave the kernel as it was: an empty chain emptied again does
 * @throws Error where the kernel is as it was before; what `write` throws
 */
export async function witnessed<T>(
  port: Pick<IptablesPort, "family" | "variant" | "glance">,
  write: () => Promise<T>,
  changes: (result: T) => boolean = () => true,
): Promise<T> {
  const generation = async () => (port.variant === "nft" ? (await port.glance?.("nat"))?.state : undefined);
  const before = await generation();
  const result = await write();
  if (before === undefined || !changes(result) || before !== (await generation())) return result;
  throw new Error(`iptables-restore (${port.family}) reported success, but the kernel's rules are as they were before`);
}

/** RFC 4648's alphabet for base32, as character codes. */
const BASE32 = Uint8Array.from("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", (digit) => digit.charCodeAt(0));

/** Eight digits for five bytes, of which each is a character. Made at once: digit by digit takes twice as long. */
function base32(bytes: string, at: number): string {
  const first =
    (bytes.charCodeAt(at) << 24) |
    (bytes.charCodeAt(at + 1) << 16) |
    (bytes.charCodeAt(at + 2) << 8) |
    bytes.charCodeAt(at + 3);
  const last = bytes.charCodeAt(at + 4);
  return String.fromCharCode(
    digit(first >>> 27),
    digit(first >>> 22),
    digit(first >>> 17),
    digit(first >>> 12),
    digit(first >>> 7),
    digit(first >>> 2),
    digit((first << 3) | (last >>> 5)),
    digit(last),
  );
}

/** For the lowest five bits. */
function digit(bits: number): number {
  return BASE32[bits & 31] ?? 0;
}
