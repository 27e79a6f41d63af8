import { asError } from "@fairlead/base";
import type {
  DestinationConnections,
  ServerCommand,
  ServerConnections,
  VirtualServer,
  VirtualServerKey,
  VirtualServerState,
} from "@fairlead/netfilter";
import { parseServerCommand } from "@fairlead/netfilter";
import { AT_ONCE, sendTogether } from "../netlink/acknowledged.ts";
import { dump } from "../netlink/dump.ts";
import { NetlinkError } from "../netlink/error.ts";
import { genericFamily } from "../netlink/generic-family.ts";
import type { NetlinkSocket, OpenNetlink } from "../netlink/socket.ts";
import { decodeDestination, decodeServer } from "./decode.ts";
import { encodeDestinationDump, encodeServerCommand, encodeServerDump } from "./messages.ts";

/** IPVS by netlink, over one socket: no process is started. */
export interface IpvsSession {
  /** As `IpvsadmClient.save`. */
  servers(): AsyncIterable<VirtualServerState>;
  /** As `IpvsadmClient.connections`; servers without a destination are left out. */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * Lines of `ipvsadm --restore`, without their ends. The kernel takes one after the other, and goes on after one that
   * it refuses; at a line that is not a command it ends.
   *
   * @throws Error that names the lines that were refused; all others count
   */
  change(lines: AsyncIterable<string>): Promise<void>;
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
      change: (lines) => change(socket, family, lines),
      close: () => socket.close(),
    };
  } catch (error) {
    await socket.close();
    throw error;
  }
}

const READING = "reading virtual servers";

/** The servers first, which are few beside their destinations: there is one dump at a time on a socket. */
async function* servers(socket: NetlinkSocket, family: number): AsyncGenerator<VirtualServerState, void, void> {
  const found: VirtualServer[] = [];
  await dump(socket, encodeServerDump(family), READING, (bytes, message) => {
    const server = decodeServer(bytes, message);
    if (server !== undefined) found.push(server);
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
  const found: DestinationConnections[] = [];
  await dump(socket, encodeDestinationDump(family, server), READING, (bytes, message) => {
    found.push(decodeDestination(bytes, message, server));
  });
  return found;
}

/** So many refused lines are named. */
const NAMED = 5;

async function change(socket: NetlinkSocket, family: number, lines: AsyncIterable<string>): Promise<void> {
  const refused: Error[] = [];
  let together: { readonly line: string; readonly request: Buffer }[] = [];
  const send = async () => {
    const refusals = await sendTogether(
      socket,
      together.map(({ request }) => request),
    );
    refused.push(...refusals.map(({ at, errno }) => new NetlinkError(`ipvs: ${together[at]?.line}`, errno)));
    together = [];
  };
  for await (const line of lines) {
    const request = requestOf(family, line);
    if (request instanceof Error) refused.push(request);
    else if (request !== undefined) together.push({ line, request });
    if (request instanceof Error) break;
    if (together.length === AT_ONCE) await send();
  }
  await send();
  const [first, ...more] = refused;
  if (first === undefined) return;
  if (more.length === 0) throw first;
  const named = refused.slice(0, NAMED).map(({ message }) => message);
  throw new AggregateError(refused, `${refused.length} lines were refused, first of all: ${named.join("; ")}`);
}

/**
 * Undefined for lines that say nothing of a server here; an error where it is no line, or none that can be asked for.
 */
function requestOf(family: number, line: string): Buffer | Error | undefined {
  try {
    const command: ServerCommand | undefined = line === "" ? undefined : parseServerCommand(line);
    return command && encodeServerCommand(family, command);
  } catch (error) {
    return asError(error);
  }
}
