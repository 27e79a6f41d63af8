import { setTimeout as sleep } from "node:timers/promises";
import { type NetworkNamespace, netlinkIn } from "@fairlead/kernel/netns";
import { now } from "@fairlead/lab/support/wait-until";
import { nftNumbers } from "@fairlead/netfilter/nft";

/** NFNLGRP_NFTABLES of linux/netfilter/nfnetlink.h. */
const NFTABLES = 7;
/** Between two looks: times are this much too late at most. */
const LOOK_EVERY_MS = 1;
const LONGEST_DATAGRAM = 1 << 16;
/** nlmsghdr and nfgenmsg. */
const HEADER = 20;
const { MESSAGES, SUBSYSTEM } = nftNumbers;
/** Messages that put an address into a table: as an element of a map, or as a rule's constant. */
const WITH_ADDRESS: ReadonlySet<number> = new Set([MESSAGES.newElement, MESSAGES.newRule]);

/**
 * Notes which addresses a datagram of nf_tables' events puts into tables.
 *
 * @param found address → milliseconds since the epoch; the first time counts
 */
export function readAddresses(datagram: Buffer, at: number, found: Map<string, number>): void {
  for (let start = 0; start + HEADER <= datagram.length; ) {
    const length = datagram.readUInt32LE(start);
    if (length < HEADER || start + length > datagram.length) return;
    const isNew = datagram[start + 5] === SUBSYSTEM && WITH_ADDRESS.has(datagram[start + 4] ?? 0);
    if (isNew) readMessage(datagram.subarray(start + HEADER, start + length), at, found);
    start += (length + 3) & ~3;
  }
}

/** Attributes, and so their values, begin at multiples of four. */
function readMessage(attributes: Buffer, at: number, found: Map<string, number>): void {
  for (let offset = 0; offset + 4 <= attributes.length; offset += 4) {
    if (attributes[offset] !== 10 || ((attributes[offset + 1] ?? 0) & 0xf8) !== 152) continue;
    const address = attributes.subarray(offset, offset + 4).join(".");
    if (!found.has(address)) found.set(address, at);
  }
}

/** When a node's kernel had each address. */
export interface KernelTimes {
  readonly found: ReadonlyMap<string, number>;
  /** Rejects when events were lost; otherwise never ends by itself. */
  readonly ended: Promise<never>;
  [Symbol.asyncDispose](): Promise<void>;
}

/** Listens to what the kernel reports of a node's tables, which it does once a transaction is committed. */
export async function kernelTimes(node: NetworkNamespace): Promise<KernelTimes> {
  const socket = await netlinkIn(node).listening([NFTABLES]);
  socket.join();
  const found = new Map<string, number>();
  const room = Buffer.alloc(LONGEST_DATAGRAM);
  let open = true;
  const listen = async () => {
    while (open) {
      for (let bytes = socket.receive(room); bytes !== undefined; bytes = socket.receive(room)) {
        readAddresses(bytes, now(), found);
      }
      await sleep(LOOK_EVERY_MS);
    }
  };
  const listening = listen();
  const ended = listening.then(() => new Promise<never>(() => {}));
  // Heeded where something is waited for.
  ended.catch(() => {});
  return {
    found,
    ended,
    async [Symbol.asyncDispose]() {
      open = false;
      await listening.catch(() => {});
      socket.close();
    },
  };
}
