/** Who owned which Service: kept in a file between starts. */

import { constants } from "node:fs";
import { mkdir, open, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { type Clock, errorChainText, errorCode, inSlices, isTooDeep } from "@fairlead/base";
import type { DecidedBy, MemoryUpdate, OwnershipChange } from "@fairlead/core";
import {
  Memory,
  type MemoryScope,
  type OwnershipDelay,
  parseMemory,
  serializeInSteps,
} from "@fairlead/endpoint-filter";
import type { Log } from "./log.ts";
import type { AgentMetrics } from "./metrics/sync-metrics.ts";
import type { SyncFollower } from "./sync/follower.ts";

interface KeeperOptions {
  /** Undefined: it is not kept. */
  readonly path: string | undefined;
  readonly scope: MemoryScope;
  readonly clock: Clock;
  readonly log: Log;
}

/** Milliseconds that changes are gathered for: a rollout changes many services in a row. */
const GATHER_MS = 500;
/** The file is written as a whole: in a large cluster it takes no more than this part of the time. */
const WRITING = 1 / 50;

/**
 * The ownership memory of a running agent, written to its file some time after it changed. That it cannot be written is
 * reported once and no reason to stop.
 */
export class MemoryKeeper {
  readonly #options: KeeperOptions;
  readonly memory: Memory;
  #cancel: (() => void) | undefined;
  #writing: Promise<void> = Promise.resolve();
  #reported = false;
  /** Milliseconds that the last one took. */
  #writingTook = 0;

  constructor(memory: Memory, options: KeeperOptions) {
    this.memory = memory;
    this.#options = options;
  }

  apply(updates: Iterable<MemoryUpdate>): void {
    if (!this.memory.apply(updates)) return;
    const wait = Math.max(GATHER_MS, this.#writingTook / WRITING);
    this.#cancel ??= this.#options.clock.after(wait, () => this.#begin());
  }

  /** Writes what is not written yet; resolves when it is. */
  async flush(): Promise<void> {
    if (this.#cancel !== undefined) this.#begin();
    await this.#writing;
  }

  #begin(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#writing = this.#writing.then(() => this.#write());
  }

  async #write(): Promise<void> {
    const { path, scope, clock, log } = this.#options;
    if (path === undefined) return;
    const began = clock.monotonic();
    try {
      await replaceFile(path, await inSlices(serializeInSteps(this.memory, scope), { clock }));
      this.#reported = false;
    } catch (error) {
      if (this.#reported) return;
      this.#reported = true;
      const message = "Failed to save the ownership memory; a restart decides anew for services without endpoints";
      log.warn(message, { file: path, error: errorChainText(error) });
    } finally {
      this.#writingTook = clock.monotonic() - began;
    }
  }
}

/**
 * Keeps the memory, ends the delay of services that are gone, and writes a line for each change of ownership, which it
 * counts.
 */
export function ownershipFollower(
  keeper: MemoryKeeper,
  delay: Pick<OwnershipDelay, "forget">,
  log: Log,
  { ownershipChanges: counter }: Pick<AgentMetrics, "ownershipChanges">,
): SyncFollower {
  return {
    planned({ memory, ownershipChanges }, { services }) {
      keeper.apply(memory);
      delay.forget(memory);
      for (const change of ownershipChanges) {
        const { service, family, from, to, why } = change;
        log.info("Ownership changed", { service, ipFamily: family, from, to, why });
        counter.inc({ from, to, reason: reasonOf(change, services.has(service)) });
      }
    },
  };
}

/**
 * Reads the memory back. Whatever is wrong with the file: an empty memory and one line.
 *
 * @param path undefined: nothing is kept
 */
export async function loadMemory(path: string | undefined, scope: MemoryScope, log: Log): Promise<Memory> {
  if (path === undefined) return new Memory();
  try {
    const { memory, reason } = parseMemory(await readStateFile(path), scope);
    if (reason !== undefined)
      log.warn("Cannot use the ownership memory; starting with an empty one", { file: path, reason });
    return memory;
  } catch (error) {
    const missing = errorCode(error) === "ENOENT";
    if (missing) log.info("No ownership memory found; starting with an empty one", { file: path });
    else
      log.warn("Cannot use the ownership memory; starting with an empty one", {
        file: path,
        reason: errorChainText(error),
      });
    return new Memory();
  }
}

/** Writes alongside the file and renames, so that a reader sees the old text or the new one, never a part. */
export async function replaceFile(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  const temporary = `${path}.${process.pid}.tmp`;
  try {
    // The leftover of a killed agent, or another program's file.
    await rm(temporary, { force: true });
    await writeFile(temporary, text, { mode: 0o600, flag: "wx" });
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/**
 * What outlives an agent, in its state folder: the owners of services, the networks learned last, and whether
 * the kernel passed the test of the fast path.
 */
const FILES = { memory: "ownership.json", networks: "networks.json", fastPath: "fast-path.json" } as const;

/** Where it is kept; undefined: nowhere, as there is no folder. */
export function stateFile(stateDir: string, what: keyof typeof FILES): string | undefined {
  return stateDir === "" ? undefined : join(stateDir, FILES[what]);
}

/** Some 200,000 services of the longest names; JSON.parse takes 40 to 50 bytes of memory for each byte of nesting. */
const MOST_MIB = 32;
/** What is written has five levels. */
const MOST_LEVELS = 20;

/**
 * Reads a file of the state folder. Opened without waiting, as a FIFO would hold up the start for good.
 *
 * @throws Error with the code of open(2), or saying that it is not a regular file, too large or nested too deep for
 * what this agent writes
 */
export async function readStateFile(path: string): Promise<string> {
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) throw new Error("it is not a regular file");
    const mib = stat.size / 2 ** 20;
    if (mib > MOST_MIB) throw new Error(`it is ${Math.ceil(mib)} MiB, a state file has ${MOST_MIB} MiB at most`);
    const text = await file.readFile("utf8");
    if (isTooDeep(text, MOST_LEVELS)) throw new Error(`it is nested deeper than ${MOST_LEVELS} levels`);
    return text;
  } finally {
    await file.close();
  }
}

/** A service whose own objects are as they were has another owner because other CIDRs count now. */
function reasonOf({ decidedBy = "endpoints" }: OwnershipChange, dirty: boolean): DecidedBy | "cidrs" {
  return decidedBy === "endpoints" && !dirty ? "cidrs" : decidedBy;
}
