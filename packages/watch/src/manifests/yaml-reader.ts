import { Worker } from "node:worker_threads";
import { errorCode } from "@fairlead/base";
import { ManifestSyntaxError } from "./syntax-error.ts";
import { documentsOf } from "./yaml-documents.ts";
import type { Piece } from "./yaml-pieces.ts";
import type { Reading } from "./yaml-thread.ts";

/** Characters that are read here: some milliseconds, however they are written. */
const SHORT = 2 ** 12;
/** What one piece may take; ordinary ones take a quarter of a second and 100 MiB at most. */
export interface YamlBounds {
  readonly milliseconds: number;
  readonly mebibytes: number;
}

const BOUNDS: YamlBounds = { milliseconds: 10_000, mebibytes: 256 };

/** Beside this module, as a source and in a bundle. */
const THREAD = new URL(import.meta.url.endsWith(".ts") ? "./yaml-thread.ts" : "./yaml-thread.js", import.meta.url);

/**
 * Reads YAML where it holds nobody up: the parser takes seconds for some texts, and nothing stops it half way. What is
 * longer than a few kilobytes is read by a thread of its own, which is started with the first such piece.
 */
export class YamlReader {
  readonly #bounds: YamlBounds;
  #thread: Worker | undefined;

  constructor(bounds: Partial<YamlBounds> = {}) {
    this.#bounds = { ...BOUNDS, ...bounds };
  }

  /**
   * The documents of a piece.
   *
   * @throws ManifestSyntaxError also where it takes too much time or memory
   */
  async documents(piece: Piece): Promise<readonly unknown[]> {
    if (piece.text.length <= SHORT) return documentsOf(piece);
    const resourceLimits = { maxOldGenerationSizeMb: this.#bounds.mebibytes };
    this.#thread ??= new Worker(THREAD, { execArgv: [], resourceLimits });
    const reading = await this.#answer(this.#thread, piece);
    if ("documents" in reading) return reading.documents;
    throw new ManifestSyntaxError(reading.problem, reading.line, reading.column);
  }

  async close(): Promise<void> {
    await this.#thread?.terminate();
    this.#thread = undefined;
  }

  #answer(thread: Worker, piece: Piece): Promise<Reading> {
    const { promise, resolve, reject } = Promise.withResolvers<Reading>();
    const { milliseconds, mebibytes } = this.#bounds;
    const refuse = (why: string) => reject(new ManifestSyntaxError(`${why}; write it as JSON`, piece.line + 1));
    const timer = setTimeout(
      () => refuse(`reading this piece of YAML takes longer than ${milliseconds / 1000} s`),
      milliseconds,
    );
    const fail = (error: Error) => {
      if (errorCode(error) === "ERR_WORKER_OUT_OF_MEMORY") {
        refuse(`reading this piece of YAML takes more than ${mebibytes} MiB of memory`);
      } else reject(error);
    };
    thread.once("message", resolve).once("error", fail);
    thread.postMessage(piece);
    return promise.finally(() => {
      clearTimeout(timer);
      thread.off("message", resolve).off("error", fail);
    });
  }
}
