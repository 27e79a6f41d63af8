/** One transaction on a draft of the ruleset, and the commit of it. */

import { decodeBatch, type NftBatch, type NftRequest, type NftTable } from "@fairlead/netfilter/nft";
import { errnoOf, NftablesError } from "../../nftables/exchange.ts";
import {
  addChain,
  addElements,
  addFlowtable,
  addRule,
  addSet,
  changeDevice,
  deleteChain,
  deleteDevices,
  deleteElements,
  deleteFlowtable,
  deleteRule,
  deleteSet,
  flushChain,
  flushSet,
  isTooLong,
  timed,
} from "./objects.ts";
import {
  countElement,
  countExpressions,
  emptyTable,
  type FakeTable,
  Journal,
  type MessageContext,
  type Refused,
  tableKey,
} from "./state.ts";

/** The tables of a namespace, changed by whole transactions. */
export class FakeRuleset {
  /** By `tableKey`. */
  readonly tables = new Map<string, FakeTable>();
  generation = 1;
  readonly devices = new Set(["lo"]);
  #handles = 0n;

  /**
   * Does all of a transaction, or nothing.
   *
   * @param bytes of the finished batch; without its end it is only checked
   * @throws NftablesError for what the kernel refuses
   */
  carryOut(batch: NftBatch, bytes: Buffer, now: number): void {
    const { requests, commits } = decodeBatch(bytes);
    const journal = new Journal();
    const { tables, devices } = this;
    const work = { tables, devices, journal, now, nextHandle: () => this.#nextHandle() };
    const refusal = takeAll(work, requests);
    if (refusal !== undefined || !commits) journal.takeBack();
    else this.generation += 1;
    if (refusal !== undefined) throw new NftablesError(batch, batch.objectOf(refusal.sequence), errnoOf(refusal.code));
  }

  /** A whole table in the place of one of that name. */
  put(table: NftTable, now: number): void {
    const made = putTable(table, now, () => this.#nextHandle());
    this.tables.set(tableKey(table.family, table.name), made);
    this.generation += 1;
  }

  /** @returns the tables that were there */
  flush(): readonly FakeTable[] {
    const gone = [...this.tables.values()];
    this.tables.clear();
    this.generation += 1;
    return gone;
  }

  deleteDevice(name: string): void {
    this.devices.delete(name);
    changeDevice(this.tables.values(), name, []);
  }

  /** Flowtables keep one that gets another name. */
  renameDevice(name: string, to: string): void {
    this.devices.delete(name);
    this.devices.add(to);
    changeDevice(this.tables.values(), name, [to]);
  }

  #nextHandle(): bigint {
    this.#handles += 1n;
    return this.#handles;
  }
}

interface CommandRefusal {
  readonly sequence: number;
  /** The error's name, such as EEXIST. */
  readonly code: string;
}

/**
 * Carries messages out one after the other.
 *
 * @returns the first that is refused: what was done until then stays, and is the caller's to take back
 */
function takeAll(work: MessageContext, requests: readonly NftRequest[]): CommandRefusal | undefined {
  for (const request of requests) {
    const code = take(work, request);
    if (code !== undefined) return { sequence: request.sequence, code };
  }
  return undefined;
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

/** A whole table as the fake holds it, with what refers to what counted. */
function putTable(table: NftTable, now: number, nextHandle: () => bigint): FakeTable {
  const made = emptyTable(table.family, table.name, table.comment);
  for (const [name, { rules, ...chain }] of table.chains) {
    made.chains.set(name, { ...chain, uses: 0, rules: rules.map((rule) => ({ ...rule, handle: nextHandle() })) });
  }
  for (const [name, { elements, ...facts }] of table.sets) {
    const kept = Array.from(elements, ([key, element]) => [key, timed(facts, element, now)] as const);
    made.sets.set(name, { facts, uses: 0, elements: new Map(kept) });
  }
  for (const [name, flowtable] of table.flowtables ?? []) made.flowtables.set(name, flowtable);
  // Nothing of this is taken back.
  const journal = new Journal();
  for (const { rules } of made.chains.values()) {
    for (const { expressions } of rules) countExpressions(journal, made, expressions, 1);
  }
  for (const { elements } of made.sets.values()) {
    for (const { element } of elements.values()) countElement(journal, made, element, 1);
  }
  return made;
}
