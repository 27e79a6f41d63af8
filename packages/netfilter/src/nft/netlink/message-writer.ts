import { AttributeWriter } from "../../netlink/writer.ts";
import { BATCH, FLAGS, SUBSYSTEM } from "./numbers.ts";

/** nlmsghdr and nfgenmsg. */
const HEADER = 20;

export interface MessageHeader {
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
export class MessageWriter {
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
      bytes.writeUInt16LE(bytes.readUInt16LE(this.#last + 6) | FLAGS.acknowledge, this.#last + 6);
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
    bytes.writeUInt16LE(FLAGS.request | flags, at + 6);
    bytes.writeUInt32LE(sequence, at + 8);
    bytes[at + 16] = family;
    bytes.writeUInt16BE(resource, at + 18);
    this.#last = at;
    return () => this.#writer.bytes().writeUInt32LE(this.#writer.length - at, at);
  }
}
