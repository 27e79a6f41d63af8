/**
 * What iptables-restore takes and refuses of the commands of a table, as the nft variant does: which line, and in a few
 * words why.
 */
import { familyOf } from "@fairlead/base";
import {
  type Command,
  type IPFamily,
  MAX_CHAIN_NAME_LENGTH,
  type Match,
  type Rule,
  type Target,
} from "@fairlead/netfilter";
import { jumpOf, type TableDraft } from "./iptables-draft.ts";

/** What rules can rely on alongside their own table. */
export interface FakeKernel {
  readonly family: IPFamily;
  readonly sets: { has(name: string): boolean };
  readonly nfacct: { has(name: string): boolean };
  /** Matches and targets that there are not. */
  readonly lacking: ReadonlySet<string>;
}

export interface NumberedCommand {
  /** Of the payload, from 1. */
  readonly line: number;
  readonly command: Command;
}

export interface Refused {
  readonly line: number;
  readonly words: string;
}

/**
 * Carries out the commands of one `*table … COMMIT` on the draft.
 *
 * @returns the line that is refused; undefined: all was taken and may be committed
 */
export function carryOut(
  kernel: FakeKernel,
  draft: TableDraft,
  commands: readonly NumberedCommand[],
): Refused | undefined {
  for (const { line, command } of commands) {
    const words = misread(kernel, command) ?? take(draft, command);
    if (words !== undefined) return { line, words };
  }
  // The kernel looks when all lines are taken in.
  for (const { line, command } of commands) {
    if (command.kind !== "append" && command.kind !== "insert") continue;
    const words = kernelFault(kernel, command.rule);
    if (words !== undefined) return { line, words };
  }
  return undefined;
}

/** What the tool finds wrong with a line by itself. */
function misread(kernel: FakeKernel, command: Command): string | undefined {
  const { chain } = command;
  if (command.kind === "chain" && chain.length > MAX_CHAIN_NAME_LENGTH) return `chain name ${chain} is too long`;
  if (!("rule" in command)) return undefined;
  const { rule } = command;
  if ((jumpOf(rule)?.length ?? 0) > MAX_CHAIN_NAME_LENGTH) return "the target's name is too long";
  if (rule.outInterface !== undefined && ["PREROUTING", "INPUT"].includes(chain)) return `no -o in ${chain}`;
  if (rule.inInterface !== undefined && ["POSTROUTING", "OUTPUT"].includes(chain)) return `no -i in ${chain}`;
  const hosts = [rule.source, rule.destination].flatMap((address) => address?.cidr.split("/")[0] ?? []);
  if (hosts.some((host) => familyOf(host) !== kernel.family)) return "an address of the other family";
  return setThatIsMissing(kernel, rule.matches) ?? (rule.target && misreadTarget(kernel.family, rule, rule.target));
}

function setThatIsMissing({ sets }: FakeKernel, matches: readonly Match[]): string | undefined {
  const missing = matches.find((match) => match.kind === "set" && !sets.has(match.name));
  return missing?.kind === "set" ? `Set ${missing.name} doesn't exist` : undefined;
}

function misreadTarget(family: IPFamily, rule: Rule, target: Target): string | undefined {
  if (target.kind === "reject" && target.with !== "tcp-reset") {
    return target.with.startsWith("icmp6") === (family === "IPv6") ? undefined : `no reject type ${target.with}`;
  }
  if (target.kind !== "dnat") return undefined;
  if ((family === "IPv4" ? /^\[/ : /^[^[:]*\./).test(target.to)) return "DNAT to the other family";
  const hasPort = /^(?:\[.*\]|[^[:]+):/.test(target.to);
  const carriesPorts = ["tcp", "udp", "sctp", "dccp"].includes(rule.protocol?.value ?? "");
  return hasPort && !carriesPorts ? "DNAT to a port, of a protocol without ports" : undefined;
}

const NO_CHAIN = "No chain/target/match by that name";

/** Carries a command out on the draft, as the tool does in its memory. */
function take(draft: TableDraft, command: Command): string | undefined {
  const { chain } = command;
  if (command.kind === "chain") return declare(draft, command);
  const next = "rule" in command ? jumpOf(command.rule) : undefined;
  if (next !== undefined && draft.chain(next) === undefined) return `Chain '${next}' does not exist`;
  const present = draft.chain(chain);
  if (present === undefined) return NO_CHAIN;
  switch (command.kind) {
    case "append":
      return add(draft, chain, present.rules.length, command.rule);
    case "insert":
      if (command.position > present.rules.length + 1) return "Index of insertion too big";
      return add(draft, chain, command.position - 1, command.rule);
    case "delete":
      return draft.remove(chain, command.rule) ? undefined : "there is no such rule in that chain";
    case "flush":
      draft.flush(chain);
      return undefined;
    case "delete-chain":
      if (draft.table.isBuiltin(chain) || draft.isReferred(chain) || present.rules.length !== 0) return "it is in use";
      draft.delete(chain);
      return undefined;
  }
}

function declare(draft: TableDraft, { chain, policy }: Extract<Command, { kind: "chain" }>): undefined {
  if (draft.table.isBuiltin(chain)) {
    // With --noflush a built-in chain keeps its rules.
    if (policy !== undefined) draft.setPolicy(chain, policy);
  } else if (draft.chain(chain) === undefined) draft.create(chain);
  else draft.flush(chain);
}

function add(draft: TableDraft, chain: string, index: number, rule: Rule): string | undefined {
  const next = jumpOf(rule);
  if (next !== undefined && draft.table.isBuiltin(next)) return "a jump to a built-in chain";
  draft.insert(chain, index, rule);
  return undefined;
}

function kernelFault(kernel: FakeKernel, rule: Rule): string | undefined {
  const lacking = extensionsOf(rule).find((name) => kernel.lacking.has(name));
  if (lacking !== undefined) return `Extension ${lacking} revision 0 not supported, missing kernel module?`;
  const counter = rule.matches.find((match) => match.kind === "nfacct");
  const isMissing = counter !== undefined && !kernel.nfacct.has(counter.name);
  return isMissing ? `no nfacct object ${counter.name}` : undefined;
}

function extensionsOf({ matches, target }: Rule): string[] {
  const modules = matches.map((match) => (match.kind === "unknown" ? match.module : match.kind));
  return target?.kind === "unknown" ? [...modules, target.name] : modules;
}
