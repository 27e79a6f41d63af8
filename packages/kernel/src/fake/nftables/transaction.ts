import type { NftRequest } from "@fairlead/netfilter/nft";
import { addChain, addRule, deleteChain, deleteRule, flushChain, isTooLong } from "./chains.ts";
import { addFlowtable, deleteDevices, deleteFlowtable } from "./flowtables.ts";
import { addElements, addSet, deleteElements, deleteSet, flushSet } from "./sets.ts";
import { emptyTable, type FakeTable } from "./state.ts";
import { followWays } from "./ways.ts";
import { type MessageContext, type Refused, tableKey } from "./work.ts";

/** Which message is refused, and with what. */
export interface Refusal {
  readonly sequence: number;
  /** The error's name, such as EEXIST. */
  readonly code: string;
}

/**
 * Carries messages out one after the other. Where packets could go in circles the kernel finds that at the commit only,
 * and does all once more to see which message it is.
 *
 * @returns the first that is refused: what was done until then stays, and is the caller's to take back
 */
export function carryOut(work: MessageContext, requests: readonly NftRequest[]): Refusal | undefined {
  const followed = new Set<FakeTable>();
  const refusal = takeAll({ ...work, mustBeFollowed: (table) => followed.add(table) }, requests);
  if (refusal !== undefined) return refusal;
  const stillThere = [...followed].filter((table) => work.tables.get(tableKey(table.family, table.name)) === table);
  if (stillThere.every((table) => followWays(table) === undefined)) return undefined;
  work.journal.takeBack();
  return takeAll(work, requests, followWays);
}

function takeAll(
  work: MessageContext,
  requests: readonly NftRequest[],
  follow: (table: FakeTable) => Refused = () => undefined,
): Refusal | undefined {
  for (const request of requests) {
    const code = take(work, request) ?? (leads(request) ? followed(work, request, follow) : undefined);
    if (code !== undefined) return { sequence: request.sequence, code };
  }
  return undefined;
}

function leads({ change }: NftRequest): boolean {
  return change.kind === "add-rule" || change.kind === "add-elements";
}

function followed(
  work: MessageContext,
  { family, table: name }: NftRequest,
  follow: (table: FakeTable) => Refused,
): Refused {
  const table = work.tables.get(tableKey(family, name));
  return table && follow(table);
}

function take(work: MessageContext, request: NftRequest): Refused {
  const { family, table: name, change } = request;
  const key = tableKey(family, name);
  const table = work.tables.get(key);
  if (change.kind === "add-table") {
    if (isTooLong(name)) return "ERANGE";
    if (table === undefined) work.journal.set(work.tables, key, emptyTable(family, name, change.comment));
    return undefined;
  }
  if (table === undefined) return "ENOENT";
  if (change.kind !== "delete-table") return takeInTable(work, table, change);
  work.journal.deleteInOrder(work.tables, key);
  return undefined;
}

function takeInTable(work: MessageContext, table: FakeTable, change: NftRequest["change"]): Refused {
  switch (change.kind) {
    case "add-chain":
      return addChain(work, table, change.chain);
    case "delete-chain":
      return deleteChain(work, table, change.name);
    case "flush-chain":
      return flushChain(work, table, change.name);
    case "add-rule":
      return addRule(work, table, change.chain, change.rule);
    case "delete-rule":
      return deleteRule(work, table, change.chain, change.handle);
    case "add-set":
      return addSet(work, table, change.set);
    case "delete-set":
      return deleteSet(work, table, change.name);
    case "add-elements":
      return addElements(work, table, change.set, change.elements);
    case "delete-elements":
      return deleteElements(work, table, change.set, change.keys);
    case "flush-set":
      return flushSet(work, table, change.name);
    case "add-flowtable":
      return addFlowtable(work, table, change.flowtable);
    case "delete-flowtable":
      return deleteFlowtable(work, table, change.name);
    case "delete-devices":
      return deleteDevices(work, table, change.flowtable, change.devices);
    default:
      return undefined;
  }
}
