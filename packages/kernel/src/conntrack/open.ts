import type { IPFamily, Protocol } from "../family.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { withCommandFile } from "./command-file.ts";
import type { Conntrack, ConntrackFlow } from "./conntrack.ts";
import { parseFlow } from "./parse-flow.ts";

/** The client of conntrack-tools. */
export function createConntrack(runner: Runner): Conntrack {
  return {
    list: (family, protocol) => list(runner, family, protocol),
    delete: (flows) => deleteFlows(runner, flows),
  };
}

async function* list(runner: Runner, family: IPFamily, protocol: Protocol): AsyncGenerator<ConntrackFlow, void, void> {
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
  for await (const line of lines(runner.stream([...argv]))) {
    const flow = parseFlow(line, family, protocol);
    if (flow !== undefined) yield flow;
  }
}

/** One process for all: `conntrack -R` carries out a line after the other, and a deletion that finds nothing is fine with it. */
async function deleteFlows(runner: Runner, flows: Iterable<ConntrackFlow>): Promise<void> {
  const commands = new Set<string>();
  for (const flow of flows) commands.add(deletion(flow));
  if (commands.size === 0) return;
  // It prints each deleted entry.
  const maxStdout = Number.MAX_SAFE_INTEGER;
  await withCommandFile(commands, (path) => runner.run(["conntrack", "-R", path], { maxStdout }));
}

function deletion(flow: ConntrackFlow): string {
  const words = [
    ["-D", "-f", flow.family.toLowerCase(), "-p", flow.protocol.toLowerCase()],
    ["--orig-dst", flow.originalDestination, "--orig-port-dst", String(flow.originalPort)],
    ["--reply-src", flow.replySource, "--reply-port-src", String(flow.replyPort)],
  ];
  return `${words.flat().join(" ")}\n`;
}
