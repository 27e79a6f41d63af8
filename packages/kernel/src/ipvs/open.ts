import { ConnectionReader, ServerReader } from "@fairlead/netfilter";
import { CommandError } from "../runner/command-error.ts";
import { read } from "../runner/read.ts";
import type { Argv, Input, Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { IpvsadmClient } from "./client.ts";

/** Milliseconds one restore may take: a full sync of a large cluster on a slow machine. */
const RESTORE_TIMEOUT = 600_000;

/** The client of ipvsadm. */
export function createIpvsadm(runner: Runner): IpvsadmClient {
  return {
    save: () => read(lines(runner.stream(["ipvsadm", "--save", "-n"])), new ServerReader()),
    connections: () => read(lines(runner.stream(["ipvsadm", "--list", "-n"])), new ConnectionReader()),
    restore: (payload) => restore(runner, payload),
    setTimeouts: async ({ tcp = 0, tcpFin = 0, udp = 0 }) => {
      await runner.run(["ipvsadm", "--set", String(tcp), String(tcpFin), String(udp)]);
    },
  };
}

async function restore(runner: Runner, input: Input): Promise<void> {
  const argv: Argv = ["ipvsadm", "--restore"];
  const { stderr } = await runner.run(argv, { input, timeoutMs: RESTORE_TIMEOUT });
  if (stderr.trim() !== "") throw new CommandError({ argv, reason: "exit", exitCode: 0, stderr });
}
