import { inSlices } from "@fairlead/base";
import type { ForwardingPlan, PlanChange } from "@fairlead/core";
import { type ServerCommand, witnessed } from "@fairlead/netfilter";
import { collect } from "./collect.ts";
import { confirmServers } from "./confirm-servers.ts";
import type { Draining } from "./draining.ts";
import { frameSections } from "./frame-commands.ts";
import type { ResolvedOptions } from "./options.ts";
import { changedGroups } from "./plan/changed-groups.ts";
import type { PlanContext } from "./plan/context.ts";
import { sameFacts, unitedFacts } from "./plan/frame.ts";
import type { FrameFacts } from "./plan/frame-facts.ts";
import { type ObjectChanges, objectChanges } from "./plan/object-changes.ts";
import { newServer, programmedState, serverChange } from "./plan/server-change.ts";
import { setWork } from "./plan/set-work.ts";
import type { IpvsPort } from "./port.ts";
import type { Programmed } from "./programmed.ts";
import { frameFacts } from "./wanted.ts";
import { carryOut, type Work, type Written } from "./work.ts";

/** A change of more groups than this, and of most of them, is cheaper to compare with what is there. */
const MANY_GROUPS = 1000;

export interface Applied {
  readonly programmed: Programmed;
  readonly written: Written;
}

export interface ChangeInput {
  readonly plan: ForwardingPlan;
  readonly change: PlanChange;
  readonly context: PlanContext;
  readonly before: Programmed;
  readonly draining: Draining;
  /** Keys of the virtual servers that this process has made; kept up. */
  readonly made: Set<string>;
}

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
  return { programmed: { context, facts, ledger: before.ledger }, written };
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
