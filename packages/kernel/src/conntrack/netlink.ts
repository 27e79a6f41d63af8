import type { IPFamily, Protocol } from "../family.ts";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import { datagrams } from "../netlink/dump.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type OpenNetlink } from "../netlink/socket.ts";
import type { Conntrack, ConntrackFlow } from "./conntrack.ts";
import { decodeEntry, encodeDeletion, encodeDump } from "./messages.ts";
import { Zones } from "./zones.ts";

/** Bytes of entries that are looked at in one go, some 2,500 of them. */
const BATCH_SIZE = 16 * DATAGRAM_SIZE;

/** Entries, and how each is deleted; to be asked before the next batch comes. */
type Batch = ReadonlyMap<ConntrackFlow, () => Buffer>;

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

async function* readEntries(
  socket: NetlinkSocket,
  family: IPFamily,
  protocol: Protocol,
  zones: boolean,
): AsyncGenerator<Batch> {
  const room = Buffer.alloc(BATCH_SIZE);
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
