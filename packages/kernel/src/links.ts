/** The client for links and their addresses, by netlink. */

import { addressBytes, bytesText, nextTurn, slices } from "@fairlead/base";
import {
  type AddressCommand,
  type DeviceCommand,
  type LinkCommand,
  type RefusedCommand,
  RefusedCommands,
  renderLinkCommand,
} from "@fairlead/netfilter";
import { attribute, findAttribute, nest, type Range } from "@fairlead/netfilter/netlink";
import { NetlinkError } from "./netlink/listening.ts";
import { ADDRESS_FAMILIES, decodeReplies, encodeMessage, FLAGS } from "./netlink/messages.ts";
import { AT_ONCE, list, refusedOf, sendTogether } from "./netlink/requests.ts";
import { DATAGRAM_SIZE, type NetlinkSocket, type OpenNetlink } from "./netlink/socket.ts";
import { CommandError, type Runner, runCommands, type Turn } from "./runner.ts";

/** Devices of this network namespace and their addresses. */
export interface LinksClient {
  /**
   * All addresses of a device, both families, without their lengths; undefined: there is no such device.
   *
   * @throws CommandError when `ip` is missing or fails otherwise
   * @throws NetlinkError when the kernel refuses
   */
  addresses(device: string): Promise<ReadonlySet<string> | undefined>;
  /**
   * Makes and deletes dummy devices, adds and deletes addresses, in this order. No transaction.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError for the first command that `ip -batch -` fails at; the commands before it count, those after
   *   it do not
   * @throws RefusedCommands when the kernel refused some by netlink; all others count
   */
  change(commands: Iterable<LinkCommand>, turn?: Turn): Promise<void>;
}

/** How devices and their addresses are reached. */
export interface LinksOptions {
  /**
   * How rtnetlink is reached, in the network namespace that the runner runs its processes in; nothing then starts a
   * process.
   * Where it cannot be had, and by default: `ip` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of devices: by netlink, else by iproute2. */
export function createLinks(runner: Runner, { open }: LinksOptions = {}): LinksClient {
  const opened = async () => open?.().catch(() => undefined);
  return {
    addresses: async (device) => {
      const socket = await opened();
      return socket === undefined ? listed(runner, device) : closing(socket, readAddresses(socket, device));
    },
    change: async (commands, turn) => {
      const socket = await opened();
      if (socket !== undefined) return closing(socket, changeLinks(socket, commands, turn));
      await runCommands(runner, ["ip", "-batch", "-"], commands, renderLinkCommand, turn);
    },
  };
}

/** ifinfomsg: family, type, index, flags, change. Zeros: the name identifies the device. */
const noLink = new Uint8Array(16);

export function encodeDevice({ kind, device }: DeviceCommand): Buffer {
  const name = nameOf(device);
  if (kind === "delete-device") return encodeMessage(TYPES.deleteLink, FLAGS.request, noLink, name);
  const info = nest(LINK_PART.info, attribute(LINK_PART.kind, Buffer.from("dummy\0")));
  return encodeMessage(TYPES.newLink, FLAGS.request | CREATE, noLink, Buffer.concat([name, info]));
}

export function encodeDeviceDump(): Buffer {
  return encodeMessage(TYPES.getLink, FLAGS.request | FLAGS.dump, noLink, new Uint8Array());
}

/** ifaddrmsg: family, length, flags and scope in a byte each, index. */
const ADDRESS_HEADER_SIZE = 8;

export function encodeAddressDump(): Buffer {
  return encodeMessage(
    TYPES.getAddress,
    FLAGS.request | FLAGS.dump,
    new Uint8Array(ADDRESS_HEADER_SIZE),
    new Uint8Array(),
  );
}

/** The number of the device that a message is about: of one about a device as of one about an address. */
export function indexIn(bytes: Buffer, message: Range): number {
  return bytes.readUInt32LE(message.start);
}

/** Of a message's header the first four bytes are not in its range: of ifaddrmsg and of ifinfomsg so much is. */
const HEADER_REST = 4;

/** AF_UNSPEC: a message about a device has no address family, one about a bridge's port has. */
const UNSPECIFIED = 0;

/** Whether a message of a device's type is about a device, not about a bridge's port. */
export function isAboutDevice(bytes: Buffer, { start }: Range): boolean {
  return bytes[start - HEADER_REST] === UNSPECIFIED;
}

export interface DeviceHeader {
  readonly name: string;
  readonly up: boolean;
}

const DEVICE_REST = 12;

/** IFF_UP of netdevice(7). */
const IS_UP = 1;

export function deviceIn(bytes: Buffer, { start, end }: Range): DeviceHeader {
  const name = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.name);
  return {
    // With the zero at its end.
    name: name === undefined ? "" : bytes.toString("utf8", name.start, name.end - 1),
    up: (bytes.readUInt32LE(start + HEADER_REST) & IS_UP) !== 0,
  };
}

/** The kind of a device (`veth`, `bridge`); undefined: one of hardware, `lo` and the like. */
export function deviceKindIn(bytes: Buffer, { start, end }: Range): string | undefined {
  const info = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.info);
  const kind = info && findAttribute(bytes, info, LINK_PART.kind);
  return kind && bytes.toString("utf8", kind.start, kind.end).replace(/\0+$/, "");
}

/** The number of the bridge, switch or bond that a device is a port of. */
export function deviceMasterIn(bytes: Buffer, { start, end }: Range): number | undefined {
  const master = findAttribute(bytes, { start: start + DEVICE_REST, end }, LINK_PART.master);
  return master && bytes.readUInt32LE(master.start);
}

interface AddressHeader {
  /** AF_INET or AF_INET6. */
  readonly addressFamily: number;
  readonly prefixLength: number;
  /** RT_SCOPE_… of rtnetlink(7). */
  readonly scope: number;
}

/** What stands before the address in the message about it. */
export function addressHeaderIn(bytes: Buffer, { start }: Range): AddressHeader {
  const [addressFamily = 0, prefixLength = 0, , scope = 0] = bytes.subarray(start - HEADER_REST, start);
  return { addressFamily, prefixLength, scope };
}

/** IFA_ADDRESS and IFA_LOCAL (linux/if_addr.h). */
const ADDRESS_PART = { address: 1, local: 2 } as const;

export function addressIn(bytes: Buffer, { start, end }: Range): string | undefined {
  const within = { start: start + HEADER_REST, end };
  const found = findAttribute(bytes, within, ADDRESS_PART.local) ?? findAttribute(bytes, within, ADDRESS_PART.address);
  return found && bytesText(bytes.subarray(found.start, found.end));
}

/** Messages of rtnetlink (linux/rtnetlink.h): RTM_NEWLINK and those after it. */
export const TYPES = {
  newLink: 16,
  deleteLink: 17,
  getLink: 18,
  newAddress: 20,
  deleteAddress: 21,
  getAddress: 22,
} as const;

/** NLM_F_CREATE and NLM_F_EXCL: what is there already is an error. */
export const CREATE = 0x600;

/** IFLA_IFNAME, IFLA_MASTER, IFLA_LINKINFO and, within the latter, IFLA_INFO_KIND (linux/if_link.h). */
export const LINK_PART = { name: 3, master: 10, info: 18, kind: 1 } as const;

/** Characters that a listing of a hundred thousand addresses stays below. */
const MAX_LISTING = 64 * 1024 * 1024;

function closing<Result>(socket: NetlinkSocket, work: Promise<Result>): Promise<Result> {
  return work.finally(() => socket.close());
}

async function listed(runner: Runner, device: string): Promise<ReadonlySet<string> | undefined> {
  try {
    const options = { maxStdout: MAX_LISTING };
    const { stdout } = await runner.run(["ip", "-oneline", "address", "show", "dev", device], options);
    return new Set(Array.from(stdout.matchAll(LOCAL), ([, address = ""]) => address));
  } catch (error) {
    if (error instanceof CommandError && error.stderr.includes("does not exist")) return undefined;
    throw error;
  }
}

/** `3: kube-ipvs0    inet 10.96.0.1/32 scope global kube-ipvs0\       valid_lft forever …` */
const LOCAL = /^\d+: \S+ +inet6? ([0-9a-f.:]+)/gm;

/** `LinksClient.addresses` by netlink. */
async function readAddresses(socket: NetlinkSocket, device: string): Promise<ReadonlySet<string> | undefined> {
  const index = await indexOf(socket, device);
  if (index === undefined) return undefined;
  const found = await list(socket, encodeAddressDump(), "reading addresses", (bytes, message) => {
    const address = indexIn(bytes, message) === index ? addressIn(bytes, message) : undefined;
    return address === undefined ? [] : [address];
  });
  return new Set(found);
}

/** `LinksClient.change` by netlink. */
async function changeLinks(
  socket: NetlinkSocket,
  commands: Iterable<LinkCommand>,
  turn: Turn = nextTurn,
): Promise<void> {
  const batch = new Batch(socket);
  const yielding = slices({ turn });
  for (const command of commands) {
    await batch.add(command);
    const turned = yielding();
    if (turned !== undefined) await turned;
  }
  await batch.end();
}

class Batch {
  readonly #socket: NetlinkSocket;
  readonly #indexes = new Map<string, number>();
  readonly #refused: RefusedCommand<LinkCommand>[] = [];
  #together: { readonly command: LinkCommand; readonly request: Buffer }[] = [];

  constructor(socket: NetlinkSocket) {
    this.#socket = socket;
  }

  async add(command: LinkCommand): Promise<void> {
    if (!("address" in command)) {
      this.#indexes.delete(command.device);
      this.#together.push({ command, request: encodeDevice(command) });
      // A device has its number once it is there.
      return this.send();
    }
    const index = this.#indexes.get(command.device) ?? (await this.#indexOf(command.device));
    this.#together.push({ command, request: encodeAddress(command, index) });
    if (this.#together.length === AT_ONCE) await this.send();
  }

  /** @throws NetlinkError for an error that is not about one command */
  async send(): Promise<void> {
    const together = this.#together;
    this.#together = [];
    const refusals = await sendTogether(
      this.#socket,
      together.map(({ request }) => request),
    );
    const commands = together.map(({ command }) => command);
    this.#refused.push(...refusedOf(refusals, commands, (command) => `ip ${renderLinkCommand(command)}`));
  }

  /**
   * Sends what is left.
   *
   * @throws RefusedCommands when the kernel refused some; all others count
   */
  async end(): Promise<void> {
    await this.send();
    if (this.#refused.length > 0) throw new RefusedCommands(this.#refused);
  }

  async #indexOf(device: string): Promise<number> {
    await this.send();
    const index = await indexOf(this.#socket, device);
    if (index === undefined) throw new Error(`device ${device} does not exist`);
    this.#indexes.set(device, index);
    return index;
  }
}

/** The number of a device; undefined: there is none of that name. */
async function indexOf(socket: NetlinkSocket, device: string): Promise<number | undefined> {
  await socket.send(encodeDeviceRequest(device));
  const bytes = await socket.receive(Buffer.alloc(DATAGRAM_SIZE));
  for (const reply of decodeReplies(bytes)) {
    if (reply.kind === "data") return indexIn(bytes, reply.attributes);
    if (reply.kind !== "result") continue;
    const error = new NetlinkError(`looking for the device ${device}`, reply.errno);
    if (error.code === "ENODEV") return undefined;
    throw error;
  }
  throw new Error(`netlink: no reply about device ${device}`);
}

/** @param index the device's number */
function encodeAddress({ kind, address }: AddressCommand, index: number): Buffer {
  const bytes = addressBytes(address);
  const header = Buffer.alloc(ADDRESS_HEADER_SIZE);
  header.set([bytes.length === 4 ? ADDRESS_FAMILIES.IPv4 : ADDRESS_FAMILIES.IPv6, bytes.length * 8]);
  header.writeUInt32LE(index, HEADER_REST);
  // Both: where they differ, `address` is the other end's.
  const attributes = Buffer.concat([attribute(ADDRESS_PART.local, bytes), attribute(ADDRESS_PART.address, bytes)]);
  const adds = kind === "add-address";
  const type = adds ? TYPES.newAddress : TYPES.deleteAddress;
  return encodeMessage(type, adds ? FLAGS.request | CREATE : FLAGS.request, header, attributes);
}

function encodeDeviceRequest(device: string): Buffer {
  return encodeMessage(TYPES.getLink, FLAGS.request, noLink, nameOf(device));
}

function nameOf(device: string): Buffer {
  return attribute(LINK_PART.name, Buffer.from(`${device}\0`));
}
