import type { IPFamily, Protocol } from "../family.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import { withCommandFile } from "./command-file.ts";
import type { Conntrack, ConntrackFlow } from "./conntrack.ts";
import { parseFlow } from "./parse-flow.ts";

/** Entries that are looked at in one go. */
const BATCH_SIZE = 2_000;

/**
 * The client of conntrack-tools, for where netlink cannot be had. The tool reads the whole table for each deletion
 * (1.4.7:
 * 0.4 s with 100,000 entries), so one deletion names all entries that look alike, of all clients.
 */
export function createConntrackTools(runner: Runner): Conntrack {
  return {
    async sweep(family, protocol, choose) {
      const deletions = new Set<string>();
      let chosen = 0;
      for await (const batch of list(runner, family, protocol)) {
        for (const flow of choose(batch)) {
          deletions.add(deletion(flow));
          chosen += 1;
        }
      }
      if (chosen > 0) await deleteAll(runner, deletions);
      return chosen;
    },
  };
}

async function* list(runner: Runner, family: IPFamily, protocol: Protocol): AsyncGenerator<ConntrackFlow[]> {
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase()] as const;
  let batch: ConntrackFlow[] = [];
  for await (const line of lines(runner.stream([...argv]))) {
    const flow = parseFlow(line, family, protocol);
    if (flow !== undefined) batch.push(flow);
    if (batch.length < BATCH_SIZE) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/**
 * One process for all: `conntrack -R` carries out a line after the other, and a deletion that finds nothing is fine
 * with it.
 */
async function deleteAll(runner: Runner, commands: Iterable<string>): Promise<void> {
  // It prints each deleted entry.
  const maxStdout = Number.MAX_SAFE_INTEGER;
  await withCommandFile(commands, (path) => runner.run(["conntrack", "-R", path], { maxStdout }));
}

/** An entry may be in a zone by both directions or by one; without all three the others' would go as well. */
const ZONE_0 = ["-w", "0", "--orig-zone", "0", "--reply-zone", "0"];

function deletion(flow: ConntrackFlow): string {
  const words = [
    ["-D", "-f", flow.family.toLowerCase(), "-p", flow.protocol.toLowerCase()],
    ["--orig-dst", flow.originalDestination, "--orig-port-dst", String(flow.originalPort)],
    ["--reply-src", flow.replySource, "--reply-port-src", String(flow.replyPort)],
    ZONE_0,
  ];
  return `${words.flat().join(" ")}\n`;
}
