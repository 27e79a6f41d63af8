import type { GroupChange } from "@fairlead/core";
import type { PlanContext } from "./context.ts";
import { groupObjects, NO_OBJECTS } from "./group.ts";
import { type Ledger, LedgerUpdate } from "./ledger.ts";
import type { WantedServer } from "./servers.ts";

/** A plan's change as kernel objects. */
export interface ObjectChanges {
  readonly moves: LedgerUpdate;
  /** The virtual servers of the changed groups, as they were and as they have to be. */
  readonly before: ReadonlyMap<string, WantedServer>;
  readonly after: ReadonlyMap<string, WantedServer>;
  /** Two groups want one server: which of them has it can't be told from the change only. */
  readonly contested: boolean;
}

/** Takes the ledger over the change; yields after each group. */
export function* objectChanges(
  groups: Iterable<GroupChange>,
  ledger: Ledger,
  old: PlanContext,
  context: PlanContext,
): Generator<void, ObjectChanges> {
  const moves = new LedgerUpdate(ledger);
  const before = new Map<string, WantedServer>();
  const after = new Map<string, WantedServer>();
  let contested = false;
  const coming: GroupChange[] = [];
  for (const group of groups) {
    const objects = group.before === undefined ? NO_OBJECTS : groupObjects(group.before, old);
    contested ||= ledger.isContested(objects);
    moves.remove(objects);
    for (const server of objects.servers) before.set(server.key, server);
    coming.push(group);
    yield;
  }
  for (const group of coming) {
    const objects = group.after === undefined ? NO_OBJECTS : groupObjects(group.after, context);
    moves.add(objects);
    contested ||= ledger.isContested(objects);
    for (const server of objects.servers) after.set(server.key, server);
    yield;
  }
  return { moves, before, after, contested };
}
