/** A copy of a table that events keep up to date. */

import { type Clock, slices } from "@fairlead/base";
import { Attributes } from "@fairlead/netfilter/netlink";
import {
  decodeChain,
  decodeElements,
  decodeRule,
  decodeSet,
  elementKey,
  FAMILY_NUMBERS,
  type NftChain,
  type NftFamily,
  type NftRule,
  type NftSet,
  type NftTable,
  nftNumbers,
  type SetElement,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import {
  GROUPS,
  type ListeningSocket,
  LONGEST_MESSAGE,
  type OpenListening,
  receiveOrLost,
} from "../netlink/listening.ts";

interface HeldTableParts {
  readonly family: NftFamily;
  readonly name: string;
  /** The whole table; undefined: there is none. */
  readonly read: () => Promise<NftTable | undefined>;
  /** A number that each transaction of any program raises by one. */
  readonly generation: () => Promise<number>;
  readonly listen: OpenListening;
  readonly clock: Pick<Clock, "monotonic">;
}

/** One message about an object of a table, as the kernel reports it to all listeners. */
interface TableMessage {
  readonly type: number;
  readonly flags: number;
  readonly of: Attributes;
}

/**
 * For so many milliseconds the copy follows: the kernel does not report what packets put into sets, and what expires
 * there.
 */
const MOST_AGE_MS = 600_000;
/** How often the whole is read again since another program wrote meanwhile. */
const READINGS = 3;

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;

const { CHAIN, FLAGS, GENERATION, MESSAGES, RULE, SET, SUBSYSTEM, TABLE } = nftNumbers;

/**
 * A table that is read whole once, and then follows what the kernel reports of each transaction: a change costs what it
 * changes. Where events overflowed the buffer, or something does not fit, it is read whole again.
 */
export class HeldTable {
  readonly #parts: HeldTableParts;
  readonly #room = Buffer.alloc(LONGEST_MESSAGE);
  #socket: ListeningSocket | undefined;
  #copy: TableCopy | undefined;
  /** Up to which the copy has everything. */
  #generation = 0;
  /** When it was read whole. */
  #since = 0;
  /** Of the transaction whose end the kernel has not reported yet. */
  #pending: TableMessage[] = [];

  constructor(parts: HeldTableParts) {
    this.#parts = parts;
  }

  /**
   * The table as it is now, until the next call.
   *
   * @returns undefined: there is none
   * @throws whatever reading it ends with
   */
  async table(): Promise<NftTable | undefined> {
    if (this.#parts.clock.monotonic() - this.#since > MOST_AGE_MS) this.#forget();
    if (this.#copy !== undefined) await this.#catchUp();
    if (this.#copy !== undefined && (await this.#parts.generation()) === this.#generation) return this.#copy.table;
    this.#forget();
    return this.#readWhole();
  }

  close(): void {
    this.#forget();
    this.#socket?.close();
    this.#socket = undefined;
  }

  async #readWhole(): Promise<NftTable | undefined> {
    const { generation, listen, read } = this.#parts;
    if (this.#socket === undefined) {
      this.#socket = await listen(GROUPS.nftables);
      this.#socket.join();
    }
    for (let reading = 1; ; reading++) {
      await this.#catchUp();
      const before = await generation();
      const table = await read();
      if (table !== undefined && (await generation()) === before) {
        this.#copy = new TableCopy(table);
        this.#generation = before;
        this.#since = this.#parts.clock.monotonic();
      }
      if (table === undefined || this.#copy !== undefined || reading === READINGS) return table;
    }
  }

  /** Takes all that the kernel has reported until now. */
  async #catchUp(): Promise<void> {
    const yielding = slices();
    try {
      for (let bytes = this.#receive(); bytes !== undefined; bytes = this.#receive()) {
        this.#take(bytes);
        await yielding();
      }
    } catch (error) {
      if (!(error instanceof CopyLost) && !(error instanceof UnreadableNft)) throw error;
      this.#forget();
      // The rest is of no use.
      await this.#catchUp();
    }
  }

  #receive(): Buffer | undefined {
    const bytes = this.#socket && receiveOrLost(this.#socket, this.#room);
    if (bytes === "lost") throw new CopyLost("events overflowed the buffer");
    return bytes;
  }

  #take(bytes: Buffer): void {
    if (this.#copy === undefined) return;
    for (let at = 0; at + HEADER <= bytes.length; ) {
      const end = at + bytes.readUInt32LE(at);
      if (end < at + HEADER || end > bytes.length) throw new CopyLost("a message is truncated");
      if (bytes[at + 5] === SUBSYSTEM && bytes[at + 4] === MESSAGES.newGeneration) {
        this.#ended(new Attributes(bytes, at + HEADER, end).u32(GENERATION.id) ?? 0);
      } else {
        // Its bytes are those of the room, which the next datagram is read into.
        const message = tableMessage(Buffer.from(bytes.subarray(at, end)), 0, end - at, this.#parts);
        if (message !== undefined) this.#pending.push(message);
      }
      at = (end + 3) & ~3;
    }
  }

  /** Applies a transaction, if the copy does not have it yet. */
  #ended(generation: number): void {
    const messages = this.#pending;
    this.#pending = [];
    const ahead = (generation - this.#generation) | 0;
    if (ahead <= 0) return;
    if (ahead > 1) throw new CopyLost("a transaction was not reported");
    for (const message of messages) this.#copy?.apply(message);
    this.#generation = generation;
  }

  #forget(): void {
    this.#copy = undefined;
    this.#pending = [];
  }
}

const FLAGS_AT = 6;

/** A message does not fit the copy, which has to be read anew. */
class CopyLost extends Error {
  override readonly name = "CopyLost";
}

/** @returns undefined: it is of another subsystem or table, or the end of a transaction */
function tableMessage(
  bytes: Buffer,
  start: number,
  end: number,
  { family, name }: Pick<NftTable, "family" | "name">,
): TableMessage | undefined {
  if (bytes[start + 5] !== SUBSYSTEM || bytes[start + 16] !== FAMILY_NUMBERS[family]) return undefined;
  const of = new Attributes(bytes, start + HEADER, end);
  // The table's name is the first attribute of every message.
  if (of.text(TABLE.name) !== name) return undefined;
  return { type: bytes[start + 4] ?? 0, flags: bytes.readUInt16LE(start + FLAGS_AT), of };
}

/** A copy of a table that takes the kernel's messages; it changes sets in place and replaces chains. */
class TableCopy {
  readonly #table: NftTable;
  readonly #family: NftFamily;
  readonly #chains: Map<string, NftChain>;
  readonly #sets: Map<string, NftSet & { readonly elements: Map<string, SetElement> }>;

  constructor(table: NftTable) {
    this.#table = table;
    this.#family = table.family;
    this.#chains = new Map(table.chains);
    this.#sets = new Map(Array.from(table.sets, ([name, set]) => [name, { ...set, elements: new Map(set.elements) }]));
  }

  /** As it is now; the next change may change it. */
  get table(): NftTable {
    return { ...this.#table, chains: this.#chains, sets: this.#sets };
  }

  /**
   * @throws CopyLost for what the copy cannot follow
   * @throws UnreadableNft for what is not known here
   */
  apply({ type, flags, of }: TableMessage): void {
    switch (type) {
      case MESSAGES.newTable:
      case MESSAGES.delTable:
        throw new CopyLost("the table itself changed");
      case MESSAGES.newChain:
        this.#addChain(decodeChain(of), (flags & FLAGS.create) !== 0);
        break;
      case MESSAGES.delChain:
        this.#gone(this.#chains, of.text(CHAIN.name));
        break;
      case MESSAGES.newRule:
        this.#addRule(decodeRule(of, this.#family), of.u64(RULE.position), (flags & FLAGS.append) !== 0);
        break;
      case MESSAGES.delRule:
        this.#deleteRule(of.text(RULE.chain) ?? "", of.u64(RULE.handle));
        break;
      case MESSAGES.newSet:
        this.#addSet(decodeSet(of));
        break;
      case MESSAGES.delSet:
        this.#gone(this.#sets, of.text(SET.name));
        break;
      case MESSAGES.newFlowtable:
      case MESSAGES.delFlowtable:
        // What is reported of devices is only those that came or went.
        throw new CopyLost("a flowtable changed");
      case MESSAGES.newElement:
        this.#elements(of, (elements, one) => elements.set(elementKey(one), one));
        break;
      case MESSAGES.delElement:
        this.#elements(of, (elements, one) => elements.delete(elementKey(one)));
        break;
    }
  }

  /** @param isNew the message makes chains; one that renames a chain does not */
  #addChain(chain: Omit<NftChain, "rules">, isNew: boolean): void {
    const known = this.#chains.get(chain.name);
    if (known === undefined && !isNew) throw new CopyLost(`chain ${chain.name} has a new name`);
    this.#chains.set(chain.name, { ...chain, rules: known?.rules ?? [] });
  }

  /**
   * @param after the handle of the rule before it
   * @param last whether it is the last one, where none is before it by its handle; else it is the first
   */
  #addRule(
    { chain, rule }: { readonly chain: string; readonly rule: NftRule },
    after: bigint | undefined,
    last: boolean,
  ): void {
    const { known, rules } = this.#rulesOf(chain);
    const none = last ? rules.length - 1 : -1;
    const before = after === undefined ? none : rules.findIndex(({ handle }) => handle === after);
    if (after !== undefined && before === -1) throw new CopyLost(`chain ${chain} has no rule ${after}`);
    if (rules.some(({ handle }) => handle === rule.handle)) throw new CopyLost(`chain ${chain} has that rule already`);
    this.#chains.set(chain, { ...known, rules: rules.toSpliced(before + 1, 0, rule) });
  }

  #deleteRule(chain: string, handle: bigint | undefined): void {
    const { known, rules } = this.#rulesOf(chain);
    const left = rules.filter((rule) => rule.handle !== handle);
    if (left.length !== rules.length - 1) throw new CopyLost(`chain ${chain} has no rule ${handle}`);
    this.#chains.set(chain, { ...known, rules: left });
  }

  #rulesOf(chain: string): { readonly known: NftChain; readonly rules: readonly NftRule[] } {
    const known = this.#chains.get(chain);
    if (known === undefined) throw new CopyLost(`there is no chain ${chain}`);
    return { known, rules: known.rules };
  }

  #addSet(set: Omit<NftSet, "elements">): void {
    this.#sets.set(set.name, { ...set, elements: this.#sets.get(set.name)?.elements ?? new Map() });
  }

  #elements(of: Attributes, take: (elements: Map<string, SetElement>, one: SetElement) => void): void {
    const { set: name, elements } = decodeElements(of);
    const set = this.#sets.get(name);
    if (set === undefined) throw new CopyLost(`there is no set ${name}`);
    for (const one of elements) take(set.elements, one);
  }

  #gone(among: Map<string, unknown>, name: string | undefined): void {
    if (name === undefined || !among.delete(name)) throw new CopyLost(`there is no ${name}`);
  }
}
