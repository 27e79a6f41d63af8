import { Gathered } from "../json/gathered.ts";
import { MalformedError } from "./read-message.ts";

/** A frame of a stream. */
export interface Frame {
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
