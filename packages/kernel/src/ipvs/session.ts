import { asError, nextTurn, slices } from "@fairlead/base";
import type {
  DestinationConnections,
  ServerCommand,
  ServerConnections,
  VirtualServer,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";
import { renderServerCommand } from "@fairlead/netfilter";
import { AT_ONCE, sendTogether } from "../netlink/acknowledged.ts";
import { NetlinkError } from "../netlink/error.ts";
import { genericFamily } from "../netlink/generic-family.ts";
import { list } from "../netlink/list.ts";
import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import type { Turn } from "../runner/commands.ts";
import { decodeDestination, decodeServer } from "./decode.ts";
import { encodeDestinationDump, encodeServerCommand, encodeServerDump } from "./messages.ts";

/** IPVS by netlink, over one socket: no process is started. */
export interface IpvsSession {
  /** As `IpvsadmClient.save`. */
  servers(): AsyncIterable<VirtualServerState>;
  /** As `IpvsadmClient.connections`; servers without a destination are left out. */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * As `IpvsadmClient.change`.
   *
   * @throws Error that names the commands that were refused; all others count, but for those after one that can't be
   *   asked for
   */
  change(commands: Iterable<ServerCommand>, turn?: Turn): Promise<void>;
  close(): Promise<void>;
}

/**
 * @throws NetlinkError ENOENT where the kernel has no IPVS, or its module is not loaded
 * @throws Error as `open` does
 */
export async function openIpvsSession(open: OpenNetlink): Promise<IpvsSession> {
  const socket = await open();
  try {
    const family = await genericFamily(socket, "IPVS");
    return {
      servers: () => servers(socket, family),
      connections: (wanted) => connections(socket, family, wanted),
      change: (commands, turn) => change(socket, family, commands, turn),
      close: () => socket.close(),
    };
  } catch (error) {
    await socket.close();
    throw error;
  }
}

const READING = "reading virtual servers";

/** The servers first, which are few alongside their destinations: there is one dump at a time on a socket. */
async function* servers(socket: NetlinkSocket, family: number): AsyncGenerator<VirtualServerState, void, void> {
  const found = await list<VirtualServer>(socket, encodeServerDump(family), READING, (bytes, message) => {
    const server = decodeServer(bytes, message);
    return server === undefined ? [] : [server];
  });
  for (const server of found) {
    const destinations = await destinationsOf(socket, family, server);
    yield {
      ...server,
      destinations: destinations.map(({ address, port, weight, forwarding }) => ({
        address,
        port,
        weight,
        forwarding,
      })),
    };
  }
}

async function* connections(
  socket: NetlinkSocket,
  family: number,
  wanted: readonly VirtualServerKey[],
): AsyncGenerator<ServerConnections, void, void> {
  for (const { family: addresses, protocol, address, port } of wanted) {
    const server: VirtualServerKey = { family: addresses, protocol, address, port };
    const destinations = await destinationsOf(socket, family, server);
    if (destinations.length > 0) yield { ...server, destinations };
  }
}

async function destinationsOf(
  socket: NetlinkSocket,
  family: number,
  server: VirtualServerKey,
): Promise<readonly DestinationConnections[]> {
  return list(socket, encodeDestinationDump(family, server), READING, (bytes, message) => [
    decodeDestination(bytes, message, server),
  ]);
}

/** So many refused commands are named. */
const NAMED = 5;

async function change(
  socket: NetlinkSocket,
  family: number,
  commands: Iterable<ServerCommand>,
  turn: Turn = nextTurn,
): Promise<void> {
  const refused: Error[] = [];
  let together: { readonly command: ServerCommand; readonly request: Buffer }[] = [];
  const send = async () => {
    const refusals = await sendTogether(
      socket,
      together.map(({ request }) => request),
    );
    for (const { at, errno } of refusals) {
      const command = together[at]?.command;
      if (command !== undefined) refused.push(new NetlinkError(`ipvs: ${renderServerCommand(command)}`, errno));
    }
    together = [];
  };
  const yielding = slices({ turn });
  for (const command of commands) {
    try {
      together.push({ command, request: encodeServerCommand(family, command) });
    } catch (error) {
      refused.push(asError(error));
      break;
    }
    if (together.length === AT_ONCE) await send();
    const turned = yielding();
    if (turned !== undefined) await turned;
  }
  await send();
  const [first, ...more] = refused;
  if (first === undefined) return;
  if (more.length === 0) throw first;
  const named = refused.slice(0, NAMED).map(({ message }) => message);
  throw new AggregateError(refused, `${refused.length} commands were refused, the first: ${named.join("; ")}`);
}
