/** Cuts a stream of protobuf into frames (a watch) or fields (a list) while it comes in. */

import { WireType } from "@bufbuild/protobuf/wire";
import { Gathered } from "./json-splitter.ts";
import { MalformedError } from "./protobuf-messages.ts";

interface Frame {
  /** Only its beginning where `tooMuch` says why. */
  readonly bytes: Uint8Array;
  readonly tooMuch: string | undefined;
}

/** Bytes of the length that stands before each frame, the highest first (apimachinery's pkg/util/framer). */
const LENGTH_BYTES = 4;
/** Nothing as long as that comes from an API server; text taken for a length is longer. */
const ABSURD = 256 * 2 ** 20;

/**
 * Cuts a stream into frames, each chunk looked at once. A frame that has not ended is kept for the next chunk; what is
 * left at the end of the stream is not a frame.
 */
export class FrameSplitter {
  readonly #body = new Gathered();
  #length = 0;
  #lengthBytes = 0;

  /** @returns the frames that the chunk completes. @throws MalformedError what stands there can't be a length */
  write(chunk: Uint8Array): readonly Frame[] {
    const completed: Frame[] = [];
    for (let at = 0; at < chunk.length; ) {
      if (this.#lengthBytes < LENGTH_BYTES) this.#addToLength(Number(chunk[at++]));
      else at = this.#body.addUpTo(this.#length, chunk, at);
      if (this.#lengthBytes === LENGTH_BYTES && this.#body.size === this.#length) completed.push(this.#take());
    }
    return completed;
  }

  #addToLength(byte: number): void {
    this.#length = this.#length * 256 + byte;
    this.#lengthBytes++;
    if (this.#length > ABSURD) throw new MalformedError(`a frame of ${this.#length} bytes or more`);
  }

  #take(): Frame {
    this.#length = 0;
    this.#lengthBytes = 0;
    const { dropped: tooMuch } = this.#body;
    return { tooMuch, bytes: this.#body.take() };
  }
}

/** A field with a length, wanted by the splitter. */
export interface CutField {
  readonly number: number;
  /** Only their beginning where `tooMuch` says why. */
  readonly bytes: Uint8Array;
  readonly tooMuch: string | undefined;
}

/** What becomes of a field: its bytes are given, its fields are given in its place, or it is passed over. */
export type Use = "take" | "open" | "pass";

/** A varint of 64 bits has ten bytes; tags and lengths have 32 bits, in five. */
const [LONGEST_VARINT, LONGEST_NUMBER] = [10, 5];

/**
 * Cuts a stream that is one message into its fields as it comes, those of one message in it too. Holds no more than one
 * field of at most `maxObjectBytes`.
 */
export class FieldSplitter {
  readonly #use: (number: number, opened: boolean) => Use;
  readonly #body = new Gathered();
  #state: "tag" | "length" | "varint" | "body" | "passing" = "tag";
  #number = 0;
  #value = 0;
  #varintBytes = 0;
  /** Of the field that is read or passed over. */
  #length = 0;
  #passed = 0;
  /** Bytes in the chunks before this one. */
  #offset = 0;
  /** Where the opened message ends, from the stream's beginning. */
  #openedEnd: number | undefined;

  /** @param use is asked for each field with a length; `opened`: it is one of the opened message */
  constructor(use: (number: number, opened: boolean) => Use) {
    this.#use = use;
  }

  /** @returns the fields that the chunk completes. @throws MalformedError */
  write(chunk: Uint8Array): readonly (CutField & { readonly opened: boolean })[] {
    const completed: (CutField & { opened: boolean })[] = [];
    let at = 0;
    while (at < chunk.length) {
      at = this.#step(chunk, at);
      const opened = this.#openedEnd !== undefined;
      if (this.#state === "body" && this.#body.size === this.#length) completed.push({ ...this.#take(), opened });
      if (this.#state === "tag" && this.#varintBytes === 0) this.#close(this.#offset + at);
    }
    this.#offset += chunk.length;
    return completed;
  }

  /** Whether the stream may end here. */
  get whole(): boolean {
    return this.#state === "tag" && this.#varintBytes === 0 && this.#openedEnd === undefined;
  }

  #step(chunk: Uint8Array, at: number): number {
    switch (this.#state) {
      case "body":
        return this.#body.addUpTo(this.#length, chunk, at);
      case "passing":
        return this.#pass(chunk, at);
      default:
        if (this.#varint(Number(chunk[at]))) this.#complete(this.#offset + at + 1);
        return at + 1;
    }
  }

  /** @returns whether it was the last byte */
  #varint(byte: number): boolean {
    this.#value += (byte & 0x7f) * 2 ** (7 * this.#varintBytes++);
    if (byte < 0x80) return true;
    const longest = this.#state === "varint" ? LONGEST_VARINT : LONGEST_NUMBER;
    if (this.#varintBytes === longest) throw new MalformedError(`a number of more than ${longest} bytes`);
    return false;
  }

  /** A varint has come to its end at `offset`. */
  #complete(offset: number): void {
    const value = this.#value;
    this.#value = 0;
    this.#varintBytes = 0;
    if (this.#state === "tag") this.#begin(value);
    else if (this.#state === "varint") this.#state = "tag";
    else this.#enter(value, offset);
  }

  #begin(tag: number): void {
    this.#number = Math.floor(tag / 8);
    const wireType = tag % 8;
    if (this.#number === 0) throw new MalformedError("a field without a number");
    if (wireType === WireType.LengthDelimited) this.#state = "length";
    else if (wireType === WireType.Varint) this.#state = "varint";
    else if (wireType === WireType.Bit64 || wireType === WireType.Bit32)
      this.#passOver(wireType === WireType.Bit64 ? 8 : 4);
    else throw new MalformedError(`a field of wire type ${wireType}`);
  }

  #enter(length: number, offset: number): void {
    if (offset + length > (this.#openedEnd ?? Number.POSITIVE_INFINITY)) {
      throw new MalformedError("a field is longer than its message");
    }
    const use = this.#use(this.#number, this.#openedEnd !== undefined);
    if (use === "pass") this.#passOver(length);
    else if (use === "open") {
      this.#openedEnd = offset + length;
      this.#state = "tag";
    } else {
      this.#length = length;
      this.#state = "body";
    }
  }

  #passOver(length: number): void {
    this.#length = length;
    this.#passed = 0;
    this.#state = length === 0 ? "tag" : "passing";
  }

  #pass(chunk: Uint8Array, at: number): number {
    const bytes = Math.min(this.#length - this.#passed, chunk.length - at);
    this.#passed += bytes;
    if (this.#passed === this.#length) this.#state = "tag";
    return at + bytes;
  }

  #take(): CutField {
    this.#state = "tag";
    const { dropped: tooMuch } = this.#body;
    return { number: this.#number, tooMuch, bytes: this.#body.take() };
  }

  #close(offset: number): void {
    if (offset === this.#openedEnd) this.#openedEnd = undefined;
  }
}
