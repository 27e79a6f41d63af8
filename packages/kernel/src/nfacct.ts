/** nfacct counters: by netlink, or by the nfacct tool where netlink cannot be used. */

import { Attributes, attribute } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./netlink/listening.ts";
import { decodeReplies, encodeRequest, FLAGS, number } from "./netlink/messages.ts";
import { sendAcknowledged } from "./netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type OpenNetlink } from "./netlink/socket.ts";
import { CommandError, type Runner } from "./runner.ts";

/** What an accounting object has counted. */
export interface NfacctCount {
  /** Packets since the object was made or reset. */
  readonly packets: number;
  /** Bytes of these. */
  readonly bytes: number;
}

/** Whether it was done, or why not. */
export type NfacctResult = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Netfilter's named counters (nfnetlink_acct). A rule with `-m nfacct` needs its counter before it. */
export interface Nfacct {
  /** Makes the counter unless it is there. Says why where this kernel or machine has none. */
  ensure(name: string): Promise<NfacctResult>;
  /** Undefined: there is no such counter, or none at all. */
  read(name: string): Promise<NfacctCount | undefined>;
}

interface NfacctOptions {
  /**
   * How netlink is reached in the network namespace of this process, so that no process is started. Where it cannot be
   * had, and by default: the tool `nfacct`.
   */
  readonly open?: OpenNetlink;
}

/** NFACCT_NAME_MAX of linux/netfilter/nfnetlink_acct.h, without the closing zero. */
const MAX_NAME = 31;

/** The client of the counters. Looks at the first call whether it is netlink or the tool. */
export function createNfacct(runner: Runner, { open }: NfacctOptions = {}): Nfacct {
  let chosen: Promise<Nfacct> | undefined;
  const client = () => (chosen ??= choose(runner, open));
  return {
    async ensure(name) {
      // The tool would cut it in silence.
      if (name.length > MAX_NAME) return { ok: false, reason: `the name ${name} has more than ${MAX_NAME} characters` };
      return (await client()).ensure(name);
    },
    read: async (name) => (await client()).read(name),
  };
}

async function choose(runner: Runner, open: OpenNetlink | undefined): Promise<Nfacct> {
  const socket = await open?.().catch(() => undefined);
  if (open === undefined || socket === undefined) return createNfacctTool(runner);
  await socket.close();
  return createNetlinkNfacct(open);
}

/** NFNL_MSG_ACCT_NEW and NFNL_MSG_ACCT_GET of NFNL_SUBSYS_ACCT (linux/netfilter/nfnetlink_acct.h). */
const TYPES = { add: 0x700, get: 0x701 } as const;
/** NFACCT_NAME, NFACCT_PKTS and NFACCT_BYTES. */
const PART = { name: 1, packets: 2, bytes: 3 } as const;
const AF_UNSPEC = 0;

function createNetlinkNfacct(open: OpenNetlink): Nfacct {
  return {
    ensure: (name) => withSocket(open, (socket) => ensureByNetlink(socket, name)),
    read: (name) => withSocket(open, (socket) => readByNetlink(socket, name)),
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

async function ensureByNetlink(socket: NetlinkSocket, name: string): Promise<NfacctResult> {
  try {
    // EBUSY: it is there, and its count is kept.
    await sendAcknowledged(socket, [requestFor("add", name)], `creating the nfacct counter ${name}`, "EBUSY");
    return { ok: true };
  } catch (error) {
    if (!(error instanceof NetlinkError)) throw error;
    return { ok: false, reason: whyNoNetlink(error) };
  }
}

async function readByNetlink(socket: NetlinkSocket, name: string): Promise<NfacctCount | undefined> {
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

function whyNoNetlink(error: NetlinkError): string {
  if (error.code === "EPERM") return "no permission to use nfacct: CAP_NET_ADMIN is missing";
  return `${error.message}; the kernel may lack nfnetlink_acct`;
}

/** The counters by the tool `nfacct`, a process for each call. */
function createNfacctTool(runner: Runner): Nfacct {
  return {
    ensure: (name) => ensureByTool(runner, name),
    read: (name) => readByTool(runner, name),
  };
}

async function ensureByTool(runner: Runner, name: string): Promise<NfacctResult> {
  try {
    await runner.run(["nfacct", "add", name]);
    return { ok: true };
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if ((await readByTool(runner, name)) !== undefined) return { ok: true };
    return { ok: false, reason: whyNoTool(error) };
  }
}

async function readByTool(runner: Runner, name: string): Promise<NfacctCount | undefined> {
  try {
    const { stdout } = await runner.run(["nfacct", "get", name]);
    const [, packets, bytes] = /pkts = (\d+), bytes = (\d+)/.exec(stdout) ?? [];
    return packets === undefined ? undefined : { packets: Number(packets), bytes: Number(bytes) };
  } catch (error) {
    if (error instanceof CommandError) return undefined;
    throw error;
  }
}

function whyNoTool(error: CommandError): string {
  if (error.reason === "not-found") return "nfacct is not installed (apt-get install nfacct)";
  if (error.stderr.includes("not permitted")) return "no permission to use nfacct: CAP_NET_ADMIN is missing";
  return `nfacct: ${error.stderr === "" ? error.message : error.stderr}; the kernel may lack nfnetlink_acct`;
}
