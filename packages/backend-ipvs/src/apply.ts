/** Applies changes of a plan: servers, sets and rules, and remembers what has been programmed. */

import { inSlices, type Slicing } from "@fairlead/base";
import type { ForwardingPlan, PlanChange, SyncReport } from "@fairlead/core";
import { renderServerKey, type ServerCommand, type ServerConnections, witnessed } from "@fairlead/netfilter";
import type { Draining } from "./draining.ts";
import type { ResolvedOptions } from "./options.ts";
import type { PlanContext } from "./plan/context.ts";
import { sameFacts, unitedFacts } from "./plan/frame.ts";
import { type FrameFacts, TABLES } from "./plan/frame-nat.ts";
import type { WantedServer } from "./plan/group.ts";
import { changedGroups, type Ledger, type ObjectChanges, objectChanges } from "./plan/ledger.ts";
import { activeDestinations, destinationText, newServer, programmedState, serverChange } from "./plan/server-change.ts";
import { SET_KEYS, setWork } from "./plan/sets.ts";
import type { IpvsPort, ServersPort } from "./port.ts";
import { carryOut, countRules, frameSections, type Work, type Written } from "./work.ts";

interface ChangeInput {
  readonly plan: ForwardingPlan;
  readonly change: PlanChange;
  readonly context: PlanContext;
  readonly before: Programmed;
  readonly draining: Draining;
  /** Keys of the virtual servers that this process has made; kept up. */
  readonly made: Set<string>;
}

interface Applied {
  readonly programmed: Programmed;
  readonly written: Written;
}

/** A change of more groups than this, and of most of them, is cheaper to compare with what is there. */
const MANY_GROUPS = 1000;

/**
 * Writes what a change touches; starts no process where that is nothing.
 *
 * @returns undefined where it takes a full sync: nothing is written, and the ledger is of no use
 */
export async function applyChange(
  port: IpvsPort,
  input: ChangeInput,
  options: ResolvedOptions,
): Promise<Applied | undefined> {
  const { plan, change, context, before, draining, made } = input;
  if (change.groups.size > Math.max(MANY_GROUPS, plan.groups.size / 2)) return undefined;
  const groups = changedGroups(plan, change, before.context, context);
  const step = await inSlices(objectChanges(groups, before.ledger, before.context, context), options);
  if (step.contested) return undefined;
  const facts = frameFacts(before.ledger, context);
  for (const key of step.after.keys()) made.add(key);
  const servers = await inSlices(serverCommands(step, draining), options);
  const work = { ...changeWork(step, before.facts, facts), servers };
  const written = await witnessed(
    port.rules,
    () => carryOut(port, work, options),
    () => !sameFacts(before.facts, facts),
  );
  if (servers.length > 0 && written.refused.length === 0) await confirmServers(port.servers, step, options);
  for (const key of step.before.keys()) if (!step.after.has(key)) made.delete(key);
  return { programmed: { ...before, context, facts }, written };
}

/** What the kernel holds of ours after the last sync that was accepted, as far as changes need to know. */
export interface Programmed {
  readonly context: PlanContext;
  readonly facts: FrameFacts;
  readonly ledger: Ledger;
}

export function report(kind: SyncReport["kind"], { ledger, facts }: Programmed, written: Written): SyncReport {
  const rules = TABLES.map((table) => {
    const total = countRules(facts, table);
    return [table, { total, written: written.rules ? total : 0 }] as const;
  });
  const members = SET_KEYS.reduce((sum, set) => sum + ledger.members(set).size, 0);
  return {
    kind,
    objects: {
      ...Object.fromEntries(rules),
      virtualServers: { total: ledger.servers.size, written: written.servers },
      addresses: { total: ledger.addresses.size, written: written.addresses },
      setMembers: { total: members, written: written.members },
    },
    ...(written.refused.length > 0 && { refused: written.refused.map(({ text }) => text) }),
  };
}

/** Puts items behind those of a list; yields after each, as there may be more of them than a call has arguments. */
export function* collect<T>(items: Iterable<T>, into: T[]): Generator<void, void, void> {
  for (const item of items) {
    into.push(item);
    yield;
  }
}

function changeWork({ moves }: ObjectChanges, before: FrameFacts, facts: FrameFacts): Omit<Work, "servers"> {
  const addresses = moves.addresses();
  const sets = setWork(moves.members(), facts.family);
  const united = unitedFacts(before, facts);
  return {
    setsFirst: sets.first,
    rulesFirst: sameFacts(before, united) ? [] : frameSections(united),
    createDevice: false,
    addressAdditions: addresses.added,
    addressRemovals: addresses.removed,
    rulesLast: sameFacts(united, facts) ? [] : frameSections(facts),
    setsLast: sets.last,
  };
}

/** Yields after each destination. */
function* serverCommands(
  { before, after }: ObjectChanges,
  draining: Draining,
): Generator<void, readonly ServerCommand[]> {
  const commands: ServerCommand[] = [];
  const removals: ServerCommand[] = [];
  for (const [key, wanted] of after) {
    const old = before.get(key);
    if (old === undefined) {
      yield* collect(newServer(wanted), commands);
      continue;
    }
    const change = yield* serverChange(wanted, programmedState(old, draining.of(key)));
    yield* collect(change.additions, commands);
    yield* collect(change.removals, removals);
    draining.set(wanted.server, change.draining);
  }
  for (const [key, { server }] of before) {
    if (after.has(key)) continue;
    removals.push({ kind: "delete-server", server });
    draining.forget(key);
  }
  yield* collect(removals, commands);
  return commands;
}

/**
 * Reads back the virtual servers of a change: a tool may say that it has written what it has not, and leave a new
 * service unserved.
 *
 * @throws Error that names a server which is not as it was written
 */
async function confirmServers(port: ServersPort, { before, after }: ObjectChanges, slicing: Partial<Slicing>) {
  const missing = new Map(after);
  const all = new Map([...before, ...after]);
  for await (const found of port.connections(Array.from(all.values(), ({ server }) => server))) {
    const key = renderServerKey(found);
    const wanted = after.get(key);
    if (wanted === undefined) throw notWritten(key, "it still exists");
    await inSlices(destinations(key, wanted, found), slicing);
    missing.delete(key);
  }
  // Servers without a destination are not listed.
  for (const [key, { endpoints }] of missing) if (endpoints.length > 0) throw notWritten(key, "it does not exist");
}

/** Yields after each destination. */
function* destinations(key: string, wanted: WantedServer, found: ServerConnections): Generator<void, void> {
  const weights = new Map<string, number>();
  for (const one of found.destinations) {
    weights.set(destinationText(one), one.weight);
    yield;
  }
  for (const destination of activeDestinations(wanted)) {
    const text = destinationText(destination);
    if (weights.get(text) !== destination.weight) throw notWritten(key, `it lacks the destination ${text}`);
    yield;
  }
}

function notWritten(key: string, what: string): Error {
  return new Error(`virtual server ${key}: the write was reported as successful, but ${what}`);
}

export function frameFacts(ledger: Ledger, { family, mark, masqueradeAll, detector }: PlanContext): FrameFacts {
  return { family, mark, masqueradeAll, detector, filled: ledger.filled(), barred: ledger.barred };
}
