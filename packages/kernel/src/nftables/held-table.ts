import { type Clock, slices } from "@fairlead/base";
import { Attributes } from "@fairlead/netfilter/netlink";
import { type NftFamily, type NftTable, nftNumbers, UnreadableNft } from "@fairlead/netfilter/nft";
import { GROUPS, type ListeningSocket, LONGEST_TOLD, type OpenListening, receiveOrLost } from "../netlink/listening.ts";
import { CopyLost, TableCopy, type TableMessage, tableMessage } from "./table-changes.ts";

const { GENERATION, MESSAGES, SUBSYSTEM } = nftNumbers;

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;
/**
 * For so many milliseconds the copy follows: the kernel does not report what packets put into sets, and what expires
 * there.
 */
const MOST_AGE_MS = 600_000;
/** How often the whole is read again since another program wrote meanwhile. */
const READINGS = 3;

export interface HeldTableParts {
  readonly family: NftFamily;
  readonly name: string;
  /** The whole table; undefined: there is none. */
  readonly read: () => Promise<NftTable | undefined>;
  /** A number that each transaction of any program raises by one. */
  readonly generation: () => Promise<number>;
  readonly listen: OpenListening;
  readonly clock: Pick<Clock, "monotonic">;
}

/**
 * A table that is read whole once, and then follows what the kernel reports of each transaction: a change costs what it
 * changes. Where events overflowed the buffer, or something does not fit, it is read whole again.
 */
export class HeldTable {
  readonly #parts: HeldTableParts;
  readonly #room = Buffer.alloc(LONGEST_TOLD);
  #socket: ListeningSocket | undefined;
  #copy: TableCopy | undefined;
  /** Up to which the copy has everything. */
  #generation = 0;
  /** When it was read whole. */
  #since = 0;
  /** Of the transaction whose end is not told yet. */
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

  /** Takes all that was told until now. */
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
