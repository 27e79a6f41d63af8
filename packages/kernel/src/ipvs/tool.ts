import {
  ConnectionReader,
  renderServerCommand,
  renderServerKey,
  type ServerConnections,
  ServerReader,
  type VirtualServerKey,
} from "@fairlead/netfilter";
import { CommandError } from "../runner/command-error.ts";
import { runCommands } from "../runner/commands.ts";
import { read } from "../runner/read.ts";
import type { Argv, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpvsadmClient } from "./client.ts";

/** Everything by `ipvsadm`. */
export function createIpvsadmTool(runner: Runner): IpvsadmClient {
  return {
    save: () => read(lines(runner.stream(["ipvsadm", "--save", "-n"])), new ServerReader()),
    connections: (servers) => connections(runner, servers),
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

async function* connections(
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
