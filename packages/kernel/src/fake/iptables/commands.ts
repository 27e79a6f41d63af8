import { type Command, MAX_CHAIN_NAME_LENGTH, type Rule } from "@fairlead/netfilter";
import { type FakeKernel, limitsOf } from "./kernel.ts";
import { checkRuleReach, type TableCheck } from "./reach.ts";
import type { Refusal } from "./refusal.ts";
import { checkRule } from "./rule-checks.ts";
import { jumpOf, type TableDraft } from "./table.ts";

/** What the tool finds wrong with a line by itself. */
export function read(kernel: FakeKernel, command: Command): Refusal | undefined {
  const { chain } = command;
  if (command.kind === "chain" && chain.length > MAX_CHAIN_NAME_LENGTH) {
    const words =
      kernel.variant === "nft"
        ? `chain name \`${chain}' too long (must be under 29 chars)`
        : `Invalid chain name \`${chain}' (28 chars max)`;
    return { form: "usage", words };
  }
  if (!("rule" in command)) return undefined;
  const next = jumpOf(command.rule);
  if (next !== undefined && next.length > MAX_CHAIN_NAME_LENGTH) {
    return { form: "usage", words: `Invalid target name \`${next}' (28 chars max)` };
  }
  return checkRule(kernel, chain, command.rule);
}

const NO_CHAIN: Refusal = { form: "missing", words: "No chain/target/match by that name" };

/**
 * Carries a command out on the draft; what the kernel will refuse is carried out too, as the tool does in its memory.
 */
export function take(ways: TableCheck, command: Command): Refusal | undefined {
  const { kernel, draft } = ways;
  const { chain } = command;
  if (command.kind === "chain") return declare(kernel, draft, command);
  if ("rule" in command) {
    const missing = checkTargetChain(draft, command.rule);
    if (missing !== undefined) return missing;
  }
  const present = draft.chain(chain);
  if (present === undefined) return NO_CHAIN;
  switch (command.kind) {
    case "append":
      return add(ways, chain, present.rules.length, command.rule);
    case "insert":
      if (command.position > present.rules.length + 1) return { form: "missing", words: "Index of insertion too big" };
      return add(ways, chain, command.position - 1, command.rule);
    case "delete":
      if (draft.remove(chain, command.rule)) return undefined;
      return { form: "missing", words: "Bad rule (does a matching rule exist in that chain?)" };
    case "flush":
      draft.flush(chain);
      return undefined;
    case "delete-chain":
      return deleteChain(kernel, draft, chain);
  }
}

function declare(
  kernel: FakeKernel,
  draft: TableDraft,
  command: Extract<Command, { kind: "chain" }>,
): Refusal | undefined {
  const { chain, policy } = command;
  if (draft.table.isBuiltin(chain)) {
    // With --noflush a built-in chain keeps its rules.
    if (policy !== undefined) draft.setPolicy(chain, policy);
    return undefined;
  }
  if (policy !== undefined && kernel.variant === "legacy") return NO_CHAIN;
  if (draft.chain(chain) === undefined) draft.create(chain);
  else draft.flush(chain);
  return undefined;
}

function checkTargetChain(draft: TableDraft, rule: Rule): Refusal | undefined {
  const next = jumpOf(rule);
  if (next === undefined || draft.chain(next) !== undefined) return undefined;
  return { form: "no-target", chain: next, go: rule.target?.kind === "goto" };
}

function add(ways: TableCheck, chain: string, index: number, rule: Rule): Refusal | undefined {
  const { draft } = ways;
  const next = jumpOf(rule);
  const operation = index === draft.chain(chain)?.rules.length ? "RULE_APPEND" : "RULE_INSERT";
  draft.insert(chain, index, rule);
  const object = `rule in chain ${chain}`;
  if (next !== undefined && draft.table.isBuiltin(next)) {
    return { form: "builtin-target", operation, errno: "Operation not supported", object };
  }
  const fault = ways.withheld.has(rule) ? undefined : kernelFault(ways, chain, rule);
  return fault === undefined ? undefined : { form: "kernel", operation, object, ...fault };
}

/** Why the kernel would not have a rule in a chain. */
export function kernelFault(ways: TableCheck, chain: string, rule: Rule) {
  const { kernel, draft } = ways;
  const lacking = extensionsOf(rule).find((name) => kernel.lacking.has(name));
  if (lacking !== undefined) {
    const warning = `Warning: Extension ${lacking} revision 0 not supported, missing kernel module?`;
    return { errno: "No such file or directory", warning };
  }
  const counter = rule.matches.find((match) => match.kind === "nfacct");
  if (counter !== undefined && !kernel.nfacct.has(counter.name)) return { errno: "No such file or directory" };
  if (!wellFormed(draft, rule)) return { errno: "Invalid argument" };
  const errno = kernel.variant === "nft" ? checkRuleReach(ways, chain, rule) : undefined;
  return errno === undefined ? undefined : { errno };
}

/** Whether target and matches go with the table and the rule's own protocol. */
function wellFormed(draft: TableDraft, rule: Rule): boolean {
  const { target, matches } = rule;
  const protocol = rule.protocol?.negated === true ? undefined : rule.protocol?.value;
  const limits = target && limitsOf(target.kind);
  if (limits !== undefined && limits.table !== draft.table.name) return false;
  if (target?.kind === "reject" && target.with === "tcp-reset" && protocol !== "tcp") return false;
  return matches.every(({ kind }) => !["tcp", "udp", "sctp"].includes(kind) || kind === protocol);
}

function extensionsOf(rule: Rule): string[] {
  const modules = rule.matches.map((match) => (match.kind === "unknown" ? match.module : match.kind));
  const { target } = rule;
  return target?.kind === "unknown" ? [...modules, target.name] : modules;
}

function deleteChain(kernel: FakeKernel, draft: TableDraft, chain: string): Refusal | undefined {
  if (draft.table.isBuiltin(chain)) {
    // nft only forgets it until it is used again.
    return kernel.variant === "nft" && draft.chain(chain)?.rules.length === 0
      ? undefined
      : { form: "busy", ...busy(chain) };
  }
  const inUse = draft.isReferred(chain) || draft.chain(chain)?.rules.length !== 0;
  draft.delete(chain);
  return inUse ? { form: "busy", ...busy(chain) } : undefined;
}

function busy(chain: string) {
  return { operation: "CHAIN_DEL", errno: "Device or resource busy", object: `chain ${chain}` };
}
