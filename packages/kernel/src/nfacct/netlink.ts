import { Attributes, attribute } from "@fairlead/netfilter/netlink";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import { NetlinkError } from "../netlink/error.ts";
import { decodeReplies, encodeRequest, FLAGS, number } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type OpenNetlink } from "../netlink/socket.ts";
import type { Nfacct, NfacctCount, NfacctResult } from "./nfacct.ts";

/** NFNL_MSG_ACCT_NEW and NFNL_MSG_ACCT_GET of NFNL_SUBSYS_ACCT (linux/netfilter/nfnetlink_acct.h). */
const TYPES = { add: 0x700, get: 0x701 } as const;
/** NFACCT_NAME, NFACCT_PKTS and NFACCT_BYTES. */
const PART = { name: 1, packets: 2, bytes: 3 } as const;
const AF_UNSPEC = 0;

/** The counters by messages to the kernel. */
export function createNetlinkNfacct(open: OpenNetlink): Nfacct {
  return {
    ensure: (name) => withSocket(open, (socket) => ensure(socket, name)),
    read: (name) => withSocket(open, (socket) => read(socket, name)),
  };
}

async function withSocket<T>(open: OpenNetlink, use: (socket: NetlinkSocket) => Promise<T>): Promise<T> {
  const socket = await open();
  try {
    return await use(socket);
  } finally {
    await socket.close();
  }
}

async function ensure(socket: NetlinkSocket, name: string): Promise<NfacctResult> {
  try {
    // EBUSY: it is there, and its count is kept.
    await sendAcknowledged(socket, [requestFor("add", name)], `creating the nfacct counter ${name}`, "EBUSY");
    return { ok: true };
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    return { ok: false, reason: why(error) };
  }
}

async function read(socket: NetlinkSocket, name: string): Promise<NfacctCount | undefined> {
  const request = requestFor("get", name);
  number(request, 0, true);
  await socket.send(request);
  const room = Buffer.alloc(DATAGRAM_SIZE);
  let count: NfacctCount | undefined;
  for (let ended = false; !ended; ) {
    const bytes = await socket.receive(room);
    for (const reply of decodeReplies(bytes)) {
      if (reply.kind !== "data") ended = true;
      else count = countIn(new Attributes(bytes, reply.attributes.start, reply.attributes.end));
    }
  }
  return count;
}

function requestFor(type: keyof typeof TYPES, name: string): Buffer {
  const attributes = attribute(PART.name, Buffer.from(`${name}\0`));
  return encodeRequest({ type: TYPES[type], flags: FLAGS.request, addressFamily: AF_UNSPEC, attributes });
}

function countIn(attributes: Attributes): NfacctCount | undefined {
  const [packets, bytes] = [attributes.u64(PART.packets), attributes.u64(PART.bytes)];
  if (packets === undefined || bytes === undefined) return undefined;
  return { packets: Number(packets), bytes: Number(bytes) };
}

function why(error: NetlinkError): string {
  if (error.code === "EPERM") return "no permission to use nfacct: CAP_NET_ADMIN is missing";
  return `${error.message}; the kernel may lack nfnetlink_acct`;
}
