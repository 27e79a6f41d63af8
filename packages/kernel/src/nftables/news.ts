import { Attributes } from "@fairlead/netfilter/netlink";
import { FAMILY_NUMBERS, type NftFamily, nftNumbers } from "@fairlead/netfilter/nft";
import type { NftablesNews, TouchedTable } from "./watch.ts";

const { GENERATION, MESSAGES, SUBSYSTEM, TABLE } = nftNumbers;

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;
/** In nlmsghdr: who asked for what is told. */
const PORT_AT = 12;

const FAMILY_OF_NUMBER = new Map<number, NftFamily>([
  [FAMILY_NUMBERS.ip, "ip"],
  [FAMILY_NUMBERS.ip6, "ip6"],
]);

/**
 * Puts transactions together from what the kernel reports: a message for each object and each element, and at the end
 * of a transaction its generation.
 */
export class NewsReader {
  readonly #own: () => number | undefined;
  #touched = new Map<string, TouchedTable>();
  /** Something was not reported: the transaction that is being read has no beginning, or will have no end. */
  #gap = false;

  /** @param own the number of the socket whose transactions are not told */
  constructor(own: () => number | undefined) {
    this.#own = own;
  }

  /** The transactions of others that end in this datagram. */
  *read(bytes: Buffer): Generator<NftablesNews, void, void> {
    for (let at = 0; at + HEADER <= bytes.length; ) {
      const length = bytes.readUInt32LE(at);
      if (length < HEADER || at + length > bytes.length) return;
      const news = this.#message(bytes, at, at + length);
      if (news !== undefined) yield news;
      at += (length + 3) & ~3;
    }
  }

  /** More happened than was reported. */
  lose(): void {
    this.#gap = true;
  }

  /** Nothing more is there to be read now: the end of what was cut off will not come. */
  *end(): Generator<NftablesNews, void, void> {
    if (this.#gap) yield this.#lost();
  }

  #lost(): NftablesNews {
    this.#gap = false;
    return { kind: "lost", tables: this.#takeTouched() };
  }

  #takeTouched(): readonly TouchedTable[] {
    const tables = [...this.#touched.values()];
    this.#touched = new Map();
    return tables;
  }

  #message(bytes: Buffer, start: number, end: number): NftablesNews | undefined {
    if (bytes[start + 5] !== SUBSYSTEM || bytes.readUInt32LE(start + PORT_AT) === this.#own()) return undefined;
    if (bytes[start + 4] !== MESSAGES.newGeneration) {
      this.#touch(FAMILY_OF_NUMBER.get(bytes[start + 16] ?? 0), bytes, start, end);
      return undefined;
    }
    if (this.#gap) return this.#lost();
    const of = new Attributes(bytes, start + HEADER, end);
    return {
      kind: "transaction",
      generation: of.u32(GENERATION.id) ?? 0,
      process: { id: of.u32(GENERATION.processId) ?? 0, name: of.text(GENERATION.processName) ?? "" },
      tables: this.#takeTouched(),
    };
  }

  /** The table's name is the first attribute of whatever is told; the rest is not read. */
  #touch(family: NftFamily | undefined, bytes: Buffer, start: number, end: number): void {
    const at = start + HEADER;
    if (family === undefined || at + 4 > end || bytes.readUInt16LE(at + 2) !== TABLE.name) return;
    const name = bytes.toString("utf8", at + 4, Math.min(end, at + bytes.readUInt16LE(at)) - 1);
    this.#touched.set(`${family} ${name}`, { family, name });
  }
}
