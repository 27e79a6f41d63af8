import { fileURLToPath } from "node:url";
import type { Ending } from "@fairlead/lab/peer/protocol";
import { type Lab, namespaceOf } from "@fairlead/lab/plain/lab";
import { type CasePacket, NODE_A } from "@fairlead/testkit";
import { execa } from "execa";

const SERVER = fileURLToPath(new URL("sctp-server.pl", import.meta.url));
const CLIENT = fileURLToPath(new URL("sctp-ask.pl", import.meta.url));

/**
 * Servers in these namespaces, as long as the returned object is not disposed of. The kernel must have SCTP sockets.
 */
export async function serveSctp(
  lab: Lab,
  names: readonly string[],
  ports: readonly number[],
): Promise<AsyncDisposable> {
  const started = new AsyncDisposableStack();
  for (const name of names) {
    const [program = "nsenter", ...prefix] = lab.namespace(name).argvPrefix;
    const server = execa(program, [...prefix, "perl", SERVER, name, ...ports.map(String)], {
      stdin: "pipe",
      buffer: { stdout: false, stderr: true },
      reject: false,
    });
    started.defer(async () => {
      server.stdin.end();
      await server;
    });
    const listens = new Promise((resolve) => server.stdout.once("data", resolve));
    const ended = server.then(({ stderr }) => {
      throw new Error(`the SCTP server of ${name} ended: ${stderr}`);
    });
    await Promise.race([listens, ended]);
    ended.catch(() => {});
  }
  return started;
}

/** Asks as the packet says, so many times, one after the other. */
export async function askSctp(
  lab: Lab,
  { from, source, destination, port }: CasePacket,
  count: number,
  timeoutMs: number,
): Promise<readonly Ending[]> {
  // The node itself sends from the address that the kernel chooses.
  const words = [from === NODE_A ? "-" : source, destination, port, count, timeoutMs / 1000].map(String);
  const { stdout } = await lab.runner(namespaceOf(from)).run(["perl", CLIENT, ...words]);
  return stdout.trim().split("\n").map(endingIn);
}

function endingIn(line: string): Ending {
  const [kind = "", server = "", local = "", remote = "", sender = ""] = line.split(" ");
  if (kind === "answer") return { kind, server, local, remote, sender };
  return kind === "refused" || kind === "lost" ? { kind } : { kind: "error", code: line };
}
