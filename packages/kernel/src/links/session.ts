import { nextTurn, slices } from "@fairlead/base";
import { type LinkCommand, renderLinkCommand } from "@fairlead/netfilter";
import { AT_ONCE, sendTogether } from "../netlink/acknowledged.ts";
import { NetlinkError } from "../netlink/error.ts";
import { list } from "../netlink/list.ts";
import { decodeReplies } from "../netlink/messages.ts";
import { DATAGRAM_SIZE, type NetlinkSocket } from "../netlink/socket.ts";
import type { Turn } from "../runner/commands.ts";
import { addressIn, encodeAddress, encodeAddressDump, encodeDevice, encodeDeviceRequest, indexIn } from "./messages.ts";

/** `LinksClient.addresses` by netlink. */
export async function readAddresses(socket: NetlinkSocket, device: string): Promise<ReadonlySet<string> | undefined> {
  const index = await indexOf(socket, device);
  if (index === undefined) return undefined;
  const found = await list(socket, encodeAddressDump(), "reading addresses", (bytes, message) => {
    const address = indexIn(bytes, message) === index ? addressIn(bytes, message) : undefined;
    return address === undefined ? [] : [address];
  });
  return new Set(found);
}

/** `LinksClient.change` by netlink. */
export async function changeLinks(
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
  await batch.send();
}

/** Requests that go together. */
class Batch {
  readonly #socket: NetlinkSocket;
  readonly #indexes = new Map<string, number>();
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

  /** @throws NetlinkError for the first that is refused; those before it count, those after it may */
  async send(): Promise<void> {
    const together = this.#together;
    this.#together = [];
    const refusals = await sendTogether(
      this.#socket,
      together.map(({ request }) => request),
    );
    for (const { at, errno } of refusals) {
      const command = together[at]?.command;
      if (command !== undefined) throw new NetlinkError(`ip ${renderLinkCommand(command)}`, errno);
    }
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
