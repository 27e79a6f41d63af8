import { addressBytes } from "@fairlead/base";
import { attribute, nest } from "@fairlead/netfilter/netlink";
import { CREATE, LINK_PART } from "../links/numbers.ts";
import { sendAcknowledged } from "../netlink/acknowledged.ts";
import { ADDRESS_FAMILIES } from "../netlink/address-families.ts";
import { loadKoffi } from "../netlink/koffi.ts";
import { encodeMessage, FLAGS } from "../netlink/messages.ts";
import { openRouteSocket } from "../netlink/socket.ts";

/** Messages of rtnetlink and what they have (linux/rtnetlink.h, linux/if_link.h, linux/veth.h, linux/if_addr.h). */
const TYPES = { newLink: 16, newAddress: 20, newRoute: 24 } as const;
const PART = { data: 2, peer: 1, namespaceFile: 28, local: 2, address: 1, gateway: 5 } as const;
/** RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_UNIVERSE and RTN_UNICAST in rtmsg. */
const ROUTE = { table: 254, protocol: 4, scope: 0, type: 1 } as const;
const UP = 1;
/** IFA_F_NODAD: usable at once. */
const NO_DAD = 2;

/** Devices, addresses and routes of the network namespace that the main thread is in. */
export async function configure(what: readonly Step[]): Promise<void> {
  const socket = await openRouteSocket();
  try {
    // A device has its number once it is there: one after the other.
    for (const step of what) await sendAcknowledged(socket, [await step()], "preparing the test's network");
  } finally {
    await socket.close();
  }
}

type Step = () => Promise<Buffer>;

/** @param namespace descriptor of the one that the other end goes to */
export function vethTo(namespace: number, name: string, peer: string): Step {
  const file = Buffer.alloc(4);
  file.writeInt32LE(namespace);
  const other = Buffer.concat([Buffer.alloc(16), nameOf(peer), attribute(PART.namespaceFile, file)]);
  const info = nest(
    LINK_PART.info,
    attribute(LINK_PART.kind, Buffer.from("veth\0")),
    nest(PART.data, attribute(PART.peer, other)),
  );
  const attributes = Buffer.concat([nameOf(name), info]);
  return async () => encodeMessage(TYPES.newLink, FLAGS.request | CREATE, Buffer.alloc(16), attributes);
}

export function up(name: string): Step {
  return async () => {
    const header = Buffer.alloc(16);
    header.writeInt32LE(await indexOf(name), 4);
    header.writeUInt32LE(UP, 8);
    header.writeUInt32LE(UP, 12);
    return encodeMessage(TYPES.newLink, FLAGS.request, header, Buffer.alloc(0));
  };
}

export function address(device: string, text: string, prefixLength: number): Step {
  return async () => {
    const bytes = addressBytes(text);
    const header = Buffer.alloc(8);
    header.set([familyOf(bytes), prefixLength, NO_DAD, 0]);
    header.writeUInt32LE(await indexOf(device), 4);
    const attributes = Buffer.concat([attribute(PART.local, bytes), attribute(PART.address, bytes)]);
    return encodeMessage(TYPES.newAddress, FLAGS.request | CREATE, header, attributes);
  };
}

export function defaultRoute(gateway: string): Step {
  const bytes = addressBytes(gateway);
  const header = [familyOf(bytes), 0, 0, 0, ROUTE.table, ROUTE.protocol, ROUTE.scope, ROUTE.type, 0, 0, 0, 0];
  return async () => encodeMessage(TYPES.newRoute, FLAGS.request | CREATE, header, attribute(PART.gateway, bytes));
}

async function indexOf(name: string): Promise<number> {
  const koffi = await loadKoffi();
  const index: number = koffi.load(null).func("uint32_t if_nametoindex(const char *)")(name);
  if (index === 0) throw new Error(`there is no device ${name}`);
  return index;
}

function familyOf(bytes: Uint8Array): number {
  return bytes.length === 4 ? ADDRESS_FAMILIES.IPv4 : ADDRESS_FAMILIES.IPv6;
}

function nameOf(device: string): Buffer {
  return attribute(LINK_PART.name, Buffer.from(`${device}\0`));
}
