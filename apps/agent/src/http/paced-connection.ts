import type { Socket } from "node:net";
import { Duplex } from "node:stream";

/** Bytes that are parsed in one turn of the event loop: an ordinary request, or up to 20 of the shortest ones. */
const PIECE_BYTES = 512;

/**
 * A client's connection that gives node:http a small piece in each turn of the event loop. By itself node:http parses
 * all of what was received at once, 2,000 pipelined requests in one chunk, and nothing stops it half way.
 */
export class PacedConnection extends Duplex {
  readonly #socket: Socket;

  constructor(socket: Socket) {
    super({ readableHighWaterMark: PIECE_BYTES, writableHighWaterMark: socket.writableHighWaterMark });
    this.#socket = socket;
    socket.on("end", () => this.push(null));
    socket.on("timeout", () => this.emit("timeout"));
    socket.on("error", (error) => this.destroy(error));
    socket.on("close", () => this.destroy());
  }

  /** As net.Socket's: some answers are for those on the node only. */
  get remoteAddress(): string | undefined {
    return this.#socket.remoteAddress;
  }

  /** As net.Socket's: node:http ends connections by it that are kept and not used. */
  setTimeout(milliseconds: number): this {
    this.#socket.setTimeout(milliseconds);
    return this;
  }

  /** As net.Socket's: the end after what is written. */
  destroySoon(): void {
    this.end(() => this.destroy());
  }

  override _read(): void {
    const soon = () => setImmediate(() => this.#give());
    if (this.#socket.readableLength > 0) soon();
    else this.#socket.once("readable", soon);
  }

  #give(): void {
    if (this.destroyed) return;
    const { readableLength } = this.#socket;
    const piece: unknown = readableLength === 0 ? null : this.#socket.read(Math.min(readableLength, PIECE_BYTES));
    if (piece !== null) this.push(piece);
    else if (!this.#socket.readableEnded) {
      // What could be read is the stream's end, which comes when it is read.
      this.#socket.read(0);
      this._read();
    }
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#socket.write(chunk, done);
  }

  override _final(done: () => void): void {
    this.#socket.end(done);
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }
}
