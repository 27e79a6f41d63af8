/**
 * Lists and deletes entries of connection tracking: by netlink, or by the conntrack tool where netlink cannot be used.
 */

import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { IPFamily, Protocol } from "../family.ts";
import { NetlinkError } from "../netlink/listening.ts";
import { datagrams, sendAcknowledged } from "../netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type OpenNetlink, openNetfilterSocket } from "../netlink/socket.ts";
import { lines, type Runner } from "../runner.ts";
import { type Conntrack, type ConntrackFlow, parseFlow } from "./flows.ts";
import { decodeEntry, encodeDeletion, encodeDump } from "./messages.ts";

/** How entries are listed and deleted. */
export interface ConntrackOptions {
  /** Reported once, with the reason, when conntrack-tools have to do instead of netlink. */
  readonly onFallback?: (reason: unknown) => void;
  /** How netlink is reached; tests have their own. */
  readonly open?: OpenNetlink;
}

/**
 * The connection tracking table: by netlink, in the network namespace of this process, and where that cannot be had by
 * conntrack-tools. Looks at the first sweep which of them it is.
 */
export function createConntrack(runner: Runner, options: ConntrackOptions = {}): Conntrack {
  const { open = openNetfilterSocket, onFallback = () => {} } = options;
  let chosen: Promise<Conntrack> | undefined;
  const choose = async (): Promise<Conntrack> => {
    try {
      await (await open()).close();
      return createNetlinkConntrack(open);
    } catch (reason) {
      onFallback(reason);
      return createConntrackTools(runner);
    }
  };
  return {
    async sweep(...of) {
      chosen ??= choose();
      return (await chosen).sweep(...of);
    },
  };
}

/**
 * Talks to the kernel by itself: one dump, filtered by the kernel, and a message for each entry to delete. 100,000
 * entries take 0.3 s, 1,000 deletions 0.03 s.
 */
export function createNetlinkConntrack(open: OpenNetlink): Conntrack {
  const zones = new Zones();
  return {
    async sweep(family, protocol, choose) {
      const socket = await open();
      try {
        const deletions: Buffer[] = [];
        for await (const batch of zones.read((named) => readEntries(socket, family, protocol, named))) {
          for (const flow of choose([...batch.keys()])) {
            const deletion = batch.get(flow);
            if (deletion !== undefined) deletions.push(deletion());
          }
        }
        // ENOENT: it has timed out meanwhile.
        await sendAcknowledged(socket, deletions, "deleting conntrack entries", "ENOENT");
        return deletions.length;
      } finally {
        await socket.close();
      }
    },
  };
}

/**
 * Whether requests name the zone of connection tracking. A kernel without zones (CONFIG_NF_CONNTRACK_ZONES) refuses
 * a request that names one, with EOPNOTSUPP; all of its entries are those of zone 0.
 */
export class Zones {
  #named = true;

  get named(): boolean {
    return this.#named;
  }

  /** Reads what a dump gives, and once more without the zone where the kernel knows none. */
  async *read<T>(dump: (zones: boolean) => AsyncIterable<T>): AsyncGenerator<T, void, void> {
    try {
      yield* dump(this.#named);
    } catch (error) {
      if (!this.#named || !(error instanceof NetlinkError) || error.code !== "ENOTSUP") throw error;
      this.#named = false;
      yield* dump(false);
    }
  }
}

/**
 * The client of conntrack-tools, for where netlink cannot be had. The tool reads the whole table for each deletion
 * (1.4.7:
 * 0.4 s with 100,000 entries), so one deletion names all entries that look alike, of all clients.
 */
export function createConntrackTools(runner: Runner): Conntrack {
  return {
    async sweep(family, protocol, choose) {
      const deletions = new Set<string>();
      let chosen = 0;
      for await (const batch of list(runner, family, protocol)) {
        for (const flow of choose(batch)) {
          deletions.add(deletion(flow));
          chosen += 1;
        }
      }
      if (chosen > 0) await deleteAll(runner, deletions);
      return chosen;
    },
  };
}

/**
 * Calls `use` with the path of a file that holds the text, and removes it afterwards. For programs that open /dev/stdin
 * by its name, which fails on the sockets that Node gives its child processes as pipes.
 */
export async function withCommandFile<T>(text: Iterable<string>, use: (path: string) => Promise<T>): Promise<T> {
  const folder = await makeFolder();
  try {
    const path = join(folder, "commands");
    await writeFile(path, text, { mode: 0o600, flag: "wx" });
    return await use(path);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Bytes of entries that are looked at in one go, some 2,500 of them. */
const RECEIVED_BYTES = 16 * DATAGRAM_SIZE;

/** Entries, and how each is deleted; to be asked before the next batch comes. */
type Batch = ReadonlyMap<ConntrackFlow, () => Buffer>;

async function* readEntries(
  socket: NetlinkSocket,
  family: IPFamily,
  protocol: Protocol,
  zones: boolean,
): AsyncGenerator<Batch> {
  const room = Buffer.alloc(RECEIVED_BYTES);
  const batch = new Map<ConntrackFlow, () => Buffer>();
  let filled = 0;
  const request = encodeDump(family, protocol, zones);
  const all = datagrams(socket, request, "reading conntrack entries", () => room.subarray(filled));
  for await (const { bytes, messages } of all) {
    for (const message of messages) {
      const flow = decodeEntry(bytes, message, family, protocol);
      if (flow !== undefined) batch.set(flow, () => encodeDeletion(bytes, message, family, zones));
    }
    filled += bytes.length;
    if (room.length - filled >= DATAGRAM_SIZE) continue;
    if (batch.size > 0) yield batch;
    batch.clear();
    filled = 0;
  }
  if (batch.size > 0) yield batch;
}

const BATCH_SIZE = 2_000;

async function* list(runner: Runner, family: IPFamily, protocol: Protocol): AsyncGenerator<ConntrackFlow[]> {
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
  let batch: ConntrackFlow[] = [];
  for await (const line of lines(runner.stream([...argv]))) {
    const flow = parseFlow(line, family, protocol);
    if (flow !== undefined) batch.push(flow);
    if (batch.length < BATCH_SIZE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/**
 * One process for all: `conntrack -R` carries out a line after the other, and a deletion that finds nothing is fine
 * with it.
 */
async function deleteAll(runner: Runner, commands: Iterable<string>): Promise<void> {
  // It prints each deleted entry.
  const maxStdout = Number.MAX_SAFE_INTEGER;
  await withCommandFile(commands, (path) => runner.run(["conntrack", "-R", path], { maxStdout }));
}

/** An entry may be in a zone by both directions or by one; without all three the others' would go as well. */
const ZONE_0 = ["-w", "0", "--orig-zone", "0", "--reply-zone", "0"];

function deletion(flow: ConntrackFlow): string {
  const words = [
    ["-D", "-f", flow.family.toLowerCase(), "-p", flow.protocol.toLowerCase()],
    ["--orig-dst", flow.originalDestination, "--orig-port-dst", String(flow.originalPort)],
    ["--reply-src", flow.replySource, "--reply-port-src", String(flow.replyPort)],
    ZONE_0,
  ];
  return `${words.flat().join(" ")}\n`;
}

/** A container whose root file system is read-only still has the first of them. */
const FOLDERS = ["/dev/shm", tmpdir()];

/** @throws the last folder's error where none of them may be written to */
async function makeFolder(): Promise<string> {
  let last: unknown;
  for (const folder of FOLDERS) {
    try {
      return await mkdtemp(join(folder, "fairlead-"));
    } catch (error) {
      last = error;
    }
  }
  throw last;
}
