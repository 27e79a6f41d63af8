/** Writes a transaction of nf_tables as one batch of netlink messages. */

import { AttributeWriter } from "../../netlink/attributes.ts";
import type { NftChain, NftFlowtable, NftRule, NftSet, SetElement } from "../model.ts";
import { FAMILY_NUMBERS, type Hex, type NftFamily } from "../types.ts";
import * as numbers from "./numbers.ts";
import { BATCH, LIST_ITEM, FLAGS as MESSAGE_FLAGS, SUBSYSTEM } from "./numbers.ts";
import {
  commentData,
  plainElement,
  writeElement,
  writeExpression,
  writeFlowtable,
  writeGoneDevices,
  writeSet,
} from "./objects.ts";

/** What a message is about, for the error that the kernel may answer. */
export interface BatchObject {
  /** What the message does. */
  readonly action: "add" | "delete" | "flush";
  /** The kind of the object. */
  readonly what: "table" | "chain" | "rule" | "set" | "element" | "flowtable";
  /** The table's, chain's or set's; a rule has its chain's. */
  readonly name: string;
}

const { FLAGS, MESSAGES } = numbers;

/** A list of elements is one attribute, whose length has 16 bits; messages are closed well before that. */
const FULL_LIST = 60_000;

/**
 * One transaction on one table, as it goes over the socket in one piece: all of it counts or nothing. The kernel
 * answers the last message once all is committed, and each one that it refuses.
 */
export class NftBatch {
  readonly #messages: MessageWriter;
  readonly #family: NftFamily;
  readonly #table: string;
  readonly #objects: BatchObject[] = [];

  /** @param size bytes that the whole will have, about */
  constructor(family: NftFamily, table: string, size = 1 << 14) {
    this.#messages = new MessageWriter(size);
    this.#family = family;
    this.#table = table;
  }

  /** The family of the table. */
  get family(): NftFamily {
    return this.#family;
  }

  /** The table that all messages are about. */
  get table(): string {
    return this.#table;
  }

  /** Messages so far, without those that begin and end the batch. */
  get count(): number {
    return this.#objects.length;
  }

  /** Bytes so far, with those of the message that will end the batch. */
  get length(): number {
    return this.#messages.length;
  }

  /** What the message of a sequence number is about; the first one has 1. */
  objectOf(sequence: number): BatchObject | undefined {
    return this.#objects[sequence - 1];
  }

  /** Adds the table, or nothing where it exists. */
  addTable(comment?: string): this {
    return this.#add("add", "table", this.#table, MESSAGES.newTable, FLAGS.create, (to) => {
      to.text(numbers.TABLE.name, this.#table).u32(numbers.TABLE.flags, 0);
      if (comment !== undefined) to.hex(numbers.TABLE.userData, commentData("table", comment));
    });
  }

  /** Deletes the table with all that it has. */
  deleteTable(): this {
    return this.#add("delete", "table", this.#table, MESSAGES.delTable, 0, (to) => {
      to.text(numbers.TABLE.name, this.#table);
    });
  }

  /** Without its rules. A chain that is there stays as it is. */
  addChain({ name, base, comment }: Pick<NftChain, "name" | "base" | "comment">): this {
    return this.#add("add", "chain", name, MESSAGES.newChain, FLAGS.create, (to) => {
      to.text(numbers.CHAIN.table, this.#table).text(numbers.CHAIN.name, name);
      if (base !== undefined) {
        to.nest(numbers.CHAIN.hook, (hook) => {
          hook.u32(numbers.CHAIN_HOOK.number, numbers.HOOK_NUMBERS[base.hook]);
          hook.u32(numbers.CHAIN_HOOK.priority, base.priority);
        });
        to.text(numbers.CHAIN.type, base.type).u32(numbers.CHAIN.policy, numbers.POLICIES[base.policy]);
      }
      if (comment !== undefined) to.hex(numbers.CHAIN.userData, commentData("chain", comment));
    });
  }

  /** With its rules; nothing else may lead to it. */
  deleteChain(name: string): this {
    return this.#add("delete", "chain", name, MESSAGES.delChain, 0, (to) => {
      to.text(numbers.CHAIN.table, this.#table).text(numbers.CHAIN.name, name);
    });
  }

  /** Removes all rules of a chain. */
  flushChain(name: string): this {
    return this.#add("flush", "chain", name, MESSAGES.delRule, 0, (to) => {
      to.text(numbers.RULE.table, this.#table).text(numbers.RULE.chain, name);
    });
  }

  /** At the end of its chain. */
  addRule(chain: string, { expressions, comment }: Pick<NftRule, "expressions" | "comment">): this {
    return this.#add("add", "rule", chain, MESSAGES.newRule, FLAGS.create | FLAGS.append, (to) => {
      to.text(numbers.RULE.table, this.#table).text(numbers.RULE.chain, chain);
      to.nest(numbers.RULE.expressions, (list) => {
        for (const expression of expressions) list.nest(numbers.LIST_ITEM, (item) => writeExpression(expression, item));
      });
      if (comment !== undefined) to.hex(numbers.RULE.userData, commentData("rule", comment));
    });
  }

  /** Deletes the rule of a handle. */
  deleteRule(chain: string, handle: bigint): this {
    return this.#add("delete", "rule", chain, MESSAGES.delRule, 0, (to) => {
      to.text(numbers.RULE.table, this.#table).text(numbers.RULE.chain, chain).u64(numbers.RULE.handle, handle);
    });
  }

  /** Without its elements. A set that is there and has the same types stays as it is. */
  addSet(set: Omit<NftSet, "elements">): this {
    return this.#add("add", "set", set.name, MESSAGES.newSet, FLAGS.create, (to) => {
      to.text(numbers.SET.table, this.#table).text(numbers.SET.name, set.name);
      // The kernel wants an id, and finds sets of one batch by it only where it does not know their names yet.
      writeSet(set, this.#objects.length, this.#family, to);
    });
  }

  /** Deletes a set or map, which no rule may name then. */
  deleteSet(name: string): this {
    return this.#add("delete", "set", name, MESSAGES.delSet, 0, (to) => {
      to.text(numbers.SET.table, this.#table).text(numbers.SET.name, name);
    });
  }

  /** Removes all elements of a set. */
  flushSet(name: string): this {
    return this.#add("flush", "set", name, MESSAGES.delElement, 0, (to) => {
      to.text(numbers.ELEMENTS.table, this.#table).text(numbers.ELEMENTS.set, name);
    });
  }

  /** An element that is there with another value is an error, the same one is not. */
  addElements(set: string, elements: Iterable<SetElement>): this {
    return this.#elements("add", set, elements, (list) => new ItemList(list, plainElement, writeElement));
  }

  /** One that is not there is an error. */
  deleteElements(set: string, keys: Iterable<Hex>): this {
    return this.#elements("delete", set, keys, (list) => new ItemList(list, () => undefined, writeKey));
  }

  /**
   * A flowtable that exists gets these devices in addition to its own. A device that does not exist is an error, as is
   * one of another flowtable of the table.
   */
  addFlowtable(flowtable: NftFlowtable): this {
    return this.#add("add", "flowtable", flowtable.name, MESSAGES.newFlowtable, FLAGS.create, (to) => {
      writeFlowtable(flowtable, to.text(numbers.FLOWTABLE.table, this.#table));
    });
  }

  /** No rule may use it. */
  deleteFlowtable(name: string): this {
    return this.#add("delete", "flowtable", name, MESSAGES.delFlowtable, 0, (to) => {
      to.text(numbers.FLOWTABLE.table, this.#table).text(numbers.FLOWTABLE.name, name);
    });
  }

  /** Takes devices out of a flowtable, which stays; one that it does not have is an error. */
  deleteDevices(flowtable: string, devices: readonly string[]): this {
    return this.#add("delete", "flowtable", flowtable, MESSAGES.delFlowtable, 0, (to) => {
      writeGoneDevices(flowtable, devices, to.text(numbers.FLOWTABLE.table, this.#table));
    });
  }

  /** The whole, ready to be sent; nothing can be added after that. */
  finish(): Buffer {
    return this.#messages.finish(this.#objects.length, true);
  }

  /** The same without its end: the kernel checks all of it, answers, and changes nothing. */
  finishAsCheck(): Buffer {
    return this.#messages.finish(this.#objects.length, false);
  }

  #elements<T>(
    action: "add" | "delete",
    set: string,
    items: Iterable<T>,
    write: (list: AttributeWriter) => ItemList<T>,
  ): this {
    const iterator = items[Symbol.iterator]();
    for (let next = iterator.next(); next.done !== true; ) {
      const type = action === "add" ? MESSAGES.newElement : MESSAGES.delElement;
      this.#add(action, "element", set, type, action === "add" ? FLAGS.create : 0, (to) => {
        to.text(numbers.ELEMENTS.table, this.#table).text(numbers.ELEMENTS.set, set);
        to.nest(numbers.ELEMENTS.list, (list) => {
          const writer = write(list);
          for (; next.done !== true && writer.length < FULL_LIST; next = iterator.next()) writer.add(next.value);
          writer.end();
        });
      });
    }
    return this;
  }

  #add(
    action: BatchObject["action"],
    what: BatchObject["what"],
    name: string,
    type: number,
    flags: number,
    write: (to: AttributeWriter) => void,
  ): this {
    this.#objects.push({ action, what, name });
    const header = { type, flags, family: FAMILY_NUMBERS[this.#family], sequence: this.#objects.length };
    this.#messages.add(header, write);
    return this;
  }
}

/** The kernel finds an element to delete by its key. */
function writeKey(key: Hex, item: AttributeWriter): void {
  item.nest(numbers.ELEMENT.key, (value) => value.hex(numbers.DATA_VALUE, key));
}

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;

interface MessageHeader {
  /** One of nf_tables' (`MESSAGES`). */
  readonly type: number;
  /** Alongside that it is a request. */
  readonly flags: number;
  /** NFPROTO_* of the table. */
  readonly family: number;
  /** By which the kernel's answers name it. */
  readonly sequence: number;
}

/** Writes messages one behind the other, between the one that begins a transaction and the one that ends it. */
class MessageWriter {
  readonly #writer: AttributeWriter;
  #last = 0;
  #finished = false;

  /** @param size bytes that the whole will have, about */
  constructor(size: number) {
    this.#writer = new AttributeWriter(size);
    this.#frame(BATCH.begin, 0);
  }

  /** Bytes of the whole, if it ended here. */
  get length(): number {
    return this.#writer.length + (this.#finished ? 0 : HEADER);
  }

  add({ type, flags, family, sequence }: MessageHeader, write: (to: AttributeWriter) => void): void {
    const end = this.#begin((SUBSYSTEM << 8) | type, flags, sequence, family, 0);
    write(this.#writer);
    end();
  }

  /**
   * The whole, ready to be sent; nothing can be added after that.
   *
   * @param commits false: without its end, so that the kernel checks all of it, answers, and changes nothing
   */
  finish(sequence: number, commits: boolean): Buffer {
    if (!this.#finished) {
      this.#finished = true;
      const bytes = this.#writer.bytes();
      bytes.writeUInt16LE(bytes.readUInt16LE(this.#last + 6) | MESSAGE_FLAGS.acknowledge, this.#last + 6);
      if (commits) this.#frame(BATCH.end, sequence);
    }
    return this.#writer.bytes();
  }

  /** The message that begins or ends the batch has no family; its resource is the subsystem. */
  #frame(type: number, sequence: number): void {
    this.#begin(type, 0, sequence, 0, SUBSYSTEM)();
  }

  #begin(type: number, flags: number, sequence: number, family: number, resource: number): () => void {
    const { bytes, at } = this.#writer.room(HEADER);
    bytes.writeUInt16LE(type, at + 4);
    bytes.writeUInt16LE(MESSAGE_FLAGS.request | flags, at + 6);
    bytes.writeUInt32LE(sequence, at + 8);
    bytes[at + 16] = family;
    bytes.writeUInt16BE(resource, at + 18);
    this.#last = at;
    return () => this.#writer.bytes().writeUInt32LE(this.#writer.length - at, at);
  }
}

/** The list of a message, while it is written. Plain items wait, so that many are written as one text. */
class ItemList<T> {
  readonly #list: AttributeWriter;
  readonly #start: number;
  readonly #plain: (item: T) => Hex | undefined;
  readonly #write: (item: T, to: AttributeWriter) => void;
  #waiting: Hex = "";

  /**
   * @param plain the whole item as hex digits; undefined: it is not plain
   * @param write the content of any other
   */
  constructor(
    list: AttributeWriter,
    plain: (item: T) => Hex | undefined,
    write: (item: T, to: AttributeWriter) => void,
  ) {
    this.#list = list;
    this.#start = list.length;
    this.#plain = plain;
    this.#write = write;
  }

  /** Bytes that it will have. */
  get length(): number {
    return this.#list.length - this.#start + this.#waiting.length / 2;
  }

  add(item: T): void {
    const digits = this.#plain(item);
    if (digits !== undefined) {
      this.#waiting += digits;
      return;
    }
    this.end();
    this.#list.nest(LIST_ITEM, (to) => this.#write(item, to));
  }

  end(): void {
    this.#list.digits(this.#waiting);
    this.#waiting = "";
  }
}
