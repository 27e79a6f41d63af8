/** The IPVS client: by netlink, or by the ipvsadm tool where netlink cannot be used. */

import { asError, nextTurn, slices } from "@fairlead/base";
import {
  ConnectionReader,
  type DestinationConnections,
  type RefusedCommand,
  RefusedCommands,
  renderServerCommand,
  renderServerKey,
  type ServerCommand,
  type ServerConnections,
  ServerReader,
  type VirtualServer,
  type VirtualServerKey,
  type VirtualServerState,
} from "@fairlead/netfilter";
import {
  decodeDestination,
  decodeServer,
  encodeDestinationDump,
  encodeServerCommand,
  encodeServerDump,
} from "./ipvs-messages.ts";
import { AT_ONCE, genericFamily, list, refusedOf, sendTogether } from "./netlink/requests.ts";
import type { NetlinkSocket, OpenNetlink } from "./netlink/socket.ts";
import { type Argv, CommandError, lines, type Runner, read, runCommands, type Turn } from "./runner.ts";

/** Seconds; 0 or absent leaves one as it is. */
export interface IpvsTimeouts {
  /** Of established TCP connections. */
  readonly tcp?: number;
  /** Of TCP connections after a FIN. */
  readonly tcpFin?: number;
  /** Of UDP flows. */
  readonly udp?: number;
}

/** The virtual servers of this network namespace, of both families. Those by firewall mark are passed over. */
export interface IpvsadmClient {
  /**
   * `ipvsadm --save -n`, server by server as it is read.
   *
   * @throws CommandError when the tool is missing, not permitted, or the kernel has no IPVS
   */
  save(): AsyncIterable<VirtualServerState>;
  /**
   * `ipvsadm --list -n`: the connections of these servers' destinations; servers that are not there are left out, and
   * those without a destination may be. One process for all, or for each of a few.
   *
   * @throws CommandError as `save`
   */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * Does these commands, one after the other. No transaction: what the kernel refuses is skipped; a command that
   * ipvsadm itself would refuse is the last one.
   *
   * @param turn gives the event loop its turn now and then; default `nextTurn`
   * @throws CommandError when `ipvsadm --restore` failed or said anything on stderr; the commands before and after a
   *   refused one may count
   * @throws Error that names the commands that were refused, where they went by netlink; all others count
   */
  change(commands: Iterable<ServerCommand>, turn?: Turn): Promise<void>;
  /** `ipvsadm --set`. */
  setTimeouts(timeouts: IpvsTimeouts): Promise<void>;
}

/** How virtual servers are reached. */
export interface IpvsadmOptions {
  /**
   * How generic netlink is reached, in the network namespace that the runner runs its processes in; nothing then starts
   * a process but `setTimeouts`. Where it cannot be had, and by default: `ipvsadm` for everything.
   */
  readonly open?: OpenNetlink;
}

/** The client of IPVS: by netlink, else by ipvsadm. */
export function createIpvsadm(runner: Runner, { open }: IpvsadmOptions = {}): IpvsadmClient {
  const tool = createIpvsadmTool(runner);
  if (open === undefined) return tool;
  // The module may come and go: the tool loads it, or says what is missing.
  const session = () => openIpvsSession(open).catch(() => undefined);
  return {
    save: () => orByTool(session, ({ servers }) => servers(), tool.save),
    connections: (servers) =>
      orByTool(
        session,
        (own) => own.connections(servers),
        () => tool.connections(servers),
      ),
    change: async (commands, turn) => {
      const own = await session();
      if (own === undefined) return tool.change(commands, turn);
      await own.change(commands, turn).finally(own.close);
    },
    setTimeouts: tool.setTimeouts,
  };
}

/** IPVS by netlink, over one socket: no process is started. */
interface IpvsSession {
  /** As `IpvsadmClient.save`. */
  servers(): AsyncIterable<VirtualServerState>;
  /** As `IpvsadmClient.connections`; servers without a destination are left out. */
  connections(servers: readonly VirtualServerKey[]): AsyncIterable<ServerConnections>;
  /**
   * As `IpvsadmClient.change`.
   *
   * @throws RefusedCommands when the kernel refused some; all others count, but for those after one that can't be
   *   asked for
   * @throws NetlinkError for an error that is not about one command
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
      connections: (wanted) => connectionsByNetlink(socket, family, wanted),
      change: (commands, turn) => change(socket, family, commands, turn),
      close: () => socket.close(),
    };
  } catch (error) {
    await socket.close();
    throw error;
  }
}

async function* orByTool<Item>(
  open: () => Promise<IpvsSession | undefined>,
  byNetlink: (session: IpvsSession) => AsyncIterable<Item>,
  byTool: () => AsyncIterable<Item>,
): AsyncGenerator<Item, void, void> {
  const session = await open();
  try {
    yield* session === undefined ? byTool() : byNetlink(session);
  } finally {
    await session?.close();
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

async function* connectionsByNetlink(
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

async function change(
  socket: NetlinkSocket,
  family: number,
  commands: Iterable<ServerCommand>,
  turn: Turn = nextTurn,
): Promise<void> {
  const refused: RefusedCommand<ServerCommand>[] = [];
  let together: { readonly command: ServerCommand; readonly request: Buffer }[] = [];
  const send = async () => {
    const [sent, asked] = [together, together.map(({ command }) => command)];
    together = [];
    const refusals = await sendTogether(
      socket,
      sent.map(({ request }) => request),
    );
    refused.push(...refusedOf(refusals, asked, (command) => `ipvs: ${renderServerCommand(command)}`));
  };
  const yielding = slices({ turn });
  for (const command of commands) {
    try {
      together.push({ command, request: encodeServerCommand(family, command) });
    } catch (error) {
      refused.push({ command, text: asError(error).message });
      break;
    }
    if (together.length === AT_ONCE) await send();
    const turned = yielding();
    if (turned !== undefined) await turned;
  }
  await send();
  if (refused.length > 0) throw new RefusedCommands(refused);
}

/** Everything by `ipvsadm`. */
function createIpvsadmTool(runner: Runner): IpvsadmClient {
  return {
    save: () => read(lines(runner.stream(["ipvsadm", "--save", "-n"])), new ServerReader()),
    connections: (servers) => connectionsByTool(runner, servers),
    change: async (commands, turn) => {
      const argv: Argv = ["ipvsadm", "--restore"];
      const { stderr } = await runCommands(runner, argv, commands, renderServerCommand, turn);
      if (stderr.trim() !== "") throw new CommandError({ argv, reason: "exit", exitCode: 0, stderr });
    },
    setTimeouts: async ({ tcp = 0, tcpFin = 0, udp = 0 }) => {
      await runner.run(["ipvsadm", "--set", String(tcp), String(tcpFin), String(udp)]);
    },
  };
}

/** So many servers are listed one by one: a listing of everything may have a hundred thousand lines. */
const FEW = 4;

async function* connectionsByTool(
  runner: Runner,
  servers: readonly VirtualServerKey[],
): AsyncGenerator<ServerConnections, void, void> {
  if (servers.length <= FEW) {
    for (const server of servers) yield* connectionsOf(runner, server);
    return;
  }
  const wanted = new Set(servers.map(renderServerKey));
  const all = read(lines(runner.stream(["ipvsadm", "--list", "-n"])), new ConnectionReader());
  for await (const server of all) if (wanted.has(renderServerKey(server))) yield server;
}

async function* connectionsOf(runner: Runner, server: VirtualServerKey): AsyncGenerator<ServerConnections, void, void> {
  const [option = "", address = ""] = renderServerKey(server).split(" ");
  try {
    yield* read(lines(runner.stream(["ipvsadm", "--list", "-n", option, address])), new ConnectionReader());
  } catch (error) {
    if (!(error instanceof CommandError) || !error.stderr.includes("No such service")) throw error;
  }
}
