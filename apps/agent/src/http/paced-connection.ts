import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { Turns } from "./turns.ts";

/** Bytes that are parsed in one turn: an ordinary request, or no more than 20 of the shortest ones. */
const PIECE_BYTES = 512;

/**
 * A client's connection, of which a parser is given small pieces, each in a turn of its own. node:http parses all of
 * what was received at once and begins all the requests in it, 2,000 in one chunk; and nothing stops it half way.
 */
export class PacedConnection extends Duplex {
  readonly #socket: Socket;
  readonly #turns: Turns;
  readonly #onActive: () => void;
  #served = false;

  /** @param onActive called before each piece */
  constructor(socket: Socket, turns: Turns, onActive: () => void) {
    super({ readableHighWaterMark: PIECE_BYTES, writableHighWaterMark: socket.writableHighWaterMark });
    this.#socket = socket;
    this.#turns = turns;
    this.#onActive = onActive;
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
    const ask = () => this.#turns.ask(() => this.#give(), this.#served);
    if (this.#socket.readableLength > 0) ask();
    else this.#socket.once("readable", ask);
  }

  #give(): void {
    if (this.destroyed) return;
    this.#onActive();
    const { readableLength } = this.#socket;
    const piece: unknown = readableLength === 0 ? null : this.#socket.read(Math.min(readableLength, PIECE_BYTES));
    if (piece !== null) {
      this.#served = true;
      this.push(piece);
    } else if (!this.#socket.readableEnded) {
      // What could be read is the stream's end: it is told when somebody reads.
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
