/** One transaction on a draft of the ruleset, and the commit of it. */

import {
  type BaseChain,
  decodeBatch,
  type Expression,
  type NftBatch,
  type NftRequest,
  type NftTable,
} from "@fairlead/netfilter/nft";
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
  chainOf,
  countElement,
  countExpressions,
  emptyTable,
  type FakeTable,
  Journal,
  type MessageContext,
  type Refused,
  tableKey,
  verdictOf,
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
    const work = { tables, devices, journal, now, nextHandle: () => this.#nextHandle(), mustBeFollowed: () => {} };
    const refusal = carryOut(work, requests);
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
 * Carries messages out one after the other. Where packets could go in circles the kernel finds that at the commit only,
 * and does all once more to see which message it is.
 *
 * @returns the first that is refused: what was done until then stays, and is the caller's to take back
 */
function carryOut(work: MessageContext, requests: readonly NftRequest[]): CommandRefusal | undefined {
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
): CommandRefusal | undefined {
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

/** NFT_JUMP_STACK_SIZE: chains that packets can be in at once. */
const DEEPEST = 16;

/** Where expressions can be: the chains' type, and the hooks (nft_chain_validate_dependency, …_hooks). */
const PLACES: Partial<
  Record<Expression["kind"], { readonly type?: "nat"; readonly hooks: readonly BaseChain["hook"][] }>
> = {
  nat: { type: "nat", hooks: ["prerouting", "output"] },
  masq: { type: "nat", hooks: ["postrouting"] },
  reject: { hooks: ["prerouting", "input", "forward", "output"] },
};

/**
 * Follows the ways of packets from all base chains, over rules and over the elements of verdict maps that rules look
 * into (nft_table_validate).
 */
function followWays(table: FakeTable): Refused {
  for (const { name, base } of table.chains.values()) {
    if (base === undefined) continue;
    const refused = new Follower(table, base).follow(name, 0);
    if (refused !== undefined) return refused;
  }
  return undefined;
}

class Follower {
  readonly #table: FakeTable;
  readonly #base: BaseChain;
  /** How deep chains were followed already. */
  readonly #depths = new Map<string, number>();

  constructor(table: FakeTable, base: BaseChain) {
    this.#table = table;
    this.#base = base;
  }

  follow(name: string, depth: number): Refused {
    if (depth === DEEPEST) return "EMLINK";
    if ((this.#depths.get(name) ?? -1) >= depth) return undefined;
    this.#depths.set(name, depth);
    for (const { expressions } of this.#table.chains.get(name)?.rules ?? []) {
      for (const expression of expressions) {
        const refused = this.#misplaced(expression) ?? this.#followAll(targetsOf(this.#table, expression), depth + 1);
        if (refused !== undefined) return refused;
      }
    }
    return undefined;
  }

  #followAll(chains: Iterable<string>, depth: number): Refused {
    for (const chain of chains) {
      const refused = this.follow(chain, depth);
      if (refused !== undefined) return refused;
    }
    return undefined;
  }

  #misplaced({ kind }: Expression): Refused {
    const place = PLACES[kind];
    if (place === undefined) return undefined;
    const { type, hook } = this.#base;
    return (place.type ?? type) === type && place.hooks.includes(hook) ? undefined : "ENOTSUP";
  }
}

function* targetsOf(table: FakeTable, expression: Expression): Generator<string, void, void> {
  const target = chainOf(verdictOf(expression));
  if (target !== undefined) yield target;
  if (expression.kind !== "lookup" || expression.to !== "verdict") return;
  for (const { element } of table.sets.get(expression.set)?.elements.values() ?? []) {
    const chain = chainOf(element.value);
    if (chain !== undefined) yield chain;
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
