import type { Command, Rule, Table } from "../rule/rule.ts";
import type { IptablesPort } from "./iptables-port.ts";

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
