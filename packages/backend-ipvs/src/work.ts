/** Work on the kernel, in its order. */

import {
  type Command,
  type CommandSource,
  type LinkCommand,
  payloadText,
  type RefusedCommand,
  RefusedCommands,
  type Rule,
  repairJumps,
  restoreLines,
  ruleEquals,
  type ServerCommand,
  type SetCommand,
} from "@fairlead/netfilter";
import type { ResolvedOptions } from "./options.ts";
import { addressCommand, CREATE_DEVICE } from "./plan/context.ts";
import { frameChains } from "./plan/frame.ts";
import { type ChainRules, type FrameFacts, type FrameTable, JUMPS, TABLES } from "./plan/frame-nat.ts";
import type { IpvsPort } from "./port.ts";

/**
 * Everything that one sync or change writes. There is no transaction over it, nor within most of its steps, so it is
 * carried out in an order of which every beginning serves: what is new is there before anything leads to it, and what
 * goes is led to no more before it does.
 */
export interface Work {
  readonly setsFirst: readonly SetCommand[];
  /** Rules that what follows relies on. */
  readonly rulesFirst: readonly CommandSource[];
  readonly createDevice: boolean;
  readonly addressAdditions: readonly string[];
  /** Servers and destinations that come, then those that go. Read once. */
  readonly servers: Iterable<ServerCommand>;
  readonly addressRemovals: readonly string[];
  /** Rules that rely on what stands before, or are needed no more. */
  readonly rulesLast: readonly CommandSource[];
  readonly setsLast: readonly SetCommand[];
}

/** How many commands were written, by kind of object. */
export interface Written {
  readonly members: number;
  readonly addresses: number;
  readonly servers: number;
  readonly rules: boolean;
  /** What the kernel refused; everything else was written. */
  readonly refused: readonly RefusedCommand[];
}

/** Name of a set → members that the kernel refused. */
export type RefusedMembers = ReadonlyMap<string, readonly string[]>;

export function refusedMembers({ refused }: Written, before: RefusedMembers = new Map()): RefusedMembers {
  const members = new Map(before);
  for (const { command } of refused) {
    if (!isAboutMember(command)) continue;
    members.set(command.set, [...(members.get(command.set) ?? []), command.member]);
  }
  return members;
}

/**
 * Starts no process for a step that has nothing to do. Refused commands end no step: one member that its set has no
 * room for is no reason to serve nothing.
 *
 * @throws what the port throws but RefusedCommands; the steps before the one that failed are done
 */
export async function carryOut(port: IpvsPort, work: Work, { turn }: ResolvedOptions): Promise<Written> {
  const refused: RefusedCommand[] = [];
  const collecting: Collecting = async (step) => {
    try {
      await step;
    } catch (error) {
      if (!(error instanceof RefusedCommands)) throw error;
      refused.push(...error.refused);
    }
  };
  const members = await changeSets(port, work.setsFirst, turn, collecting);
  const first = await writeRules(port, work.rulesFirst, turn);
  const additions = work.addressAdditions.map((address) => addressCommand("add-address", address));
  await changeLinks(port, work.createDevice ? [CREATE_DEVICE, ...additions] : additions, turn, collecting);
  const servers = await changeServers(port, work.servers, turn, collecting);
  const removals = work.addressRemovals.map((address) => addressCommand("delete-address", address));
  await changeLinks(port, removals, turn, collecting);
  const last = await writeRules(port, work.rulesLast, turn);
  const gone = await changeSets(port, work.setsLast, turn, collecting);
  return {
    members: members + gone,
    addresses: additions.length + removals.length,
    servers,
    rules: first || last,
    refused,
  };
}

/** The rules of the built-in chains that lead to ours. */
type BuiltinRules = (table: FrameTable, chain: string) => readonly Rule[];

/** Every chain of this mode written anew. With the built-in chains' rules, the jumps to them too. */
export function frameSections(facts: FrameFacts, builtin?: BuiltinRules): readonly CommandSource[] {
  const chains = frameChains(facts);
  return TABLES.map((table) => ({ table, commands: tableCommands(table, chains[table], builtin) }));
}

export function countRules(facts: FrameFacts, table: FrameTable): number {
  return frameChains(facts)[table].reduce((sum, { rules }) => sum + rules.length, 0);
}

function isAboutMember(command: unknown): command is { readonly set: string; readonly member: string } {
  return typeof command === "object" && command !== null && "member" in command;
}

type Turn = ResolvedOptions["turn"];
/** Goes on after what was refused, and keeps it. */
type Collecting = (step: Promise<void>) => Promise<void>;

async function changeSets(
  { sets }: IpvsPort,
  commands: readonly SetCommand[],
  turn: Turn,
  collecting: Collecting,
): Promise<number> {
  if (commands.length > 0) await collecting(sets.change(commands, turn));
  return commands.length;
}

async function writeRules({ rules }: IpvsPort, sections: readonly CommandSource[], turn: Turn): Promise<boolean> {
  if (sections.length > 0) await rules.restore(payloadText(restoreLines(sections), turn));
  return sections.length > 0;
}

async function changeLinks(
  { links }: IpvsPort,
  commands: readonly LinkCommand[],
  turn: Turn,
  collecting: Collecting,
): Promise<void> {
  if (commands.length > 0) await collecting(links.change(commands, turn));
}

async function changeServers(
  { servers }: IpvsPort,
  commands: Iterable<ServerCommand>,
  turn: Turn,
  collecting: Collecting,
): Promise<number> {
  const iterator = commands[Symbol.iterator]();
  const first = iterator.next();
  if (first.done === true) return 0;
  let count = 0;
  function* counted(): Generator<ServerCommand> {
    for (let step = first; step.done !== true; step = iterator.next()) {
      count++;
      yield step.value;
    }
  }
  await collecting(servers.change(counted(), turn));
  return count;
}

function* tableCommands(
  table: FrameTable,
  chains: readonly ChainRules[],
  builtin: BuiltinRules | undefined,
): Generator<Command> {
  for (const { chain } of chains) yield { kind: "chain", chain };
  for (const { chain, rules } of chains) {
    for (const rule of rules) yield { kind: "append", chain, rule };
  }
  if (builtin === undefined) return;
  for (const { table: of, chain, rules, unwanted } of JUMPS) {
    if (of !== table) continue;
    const isUnwanted = (rule: Rule) => unwanted.some((one) => ruleEquals(one, rule));
    yield* repairJumps(chain, { first: rules, isUnwanted }, builtin(table, chain));
  }
}
