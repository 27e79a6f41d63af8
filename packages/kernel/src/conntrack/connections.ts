import type { IPFamily, Protocol } from "../family.ts";
import type { Runner } from "../runner/runner.ts";
import { lines } from "../runner/text.ts";
import type { Connection } from "./connection.ts";
import { parseConnection } from "./parse-connection.ts";

/**
 * The connections of a family and protocol in zone 0 as they are read; of one client where `source` is given.
 *
 * @throws CommandError when the tool is missing, not permitted or fails
 */
export async function* listConnections(
  runner: Runner,
  family: IPFamily,
  protocol: Protocol,
  { source }: { readonly source?: string } = {},
): AsyncGenerator<Connection, void, void> {
  const about = source === undefined ? [] : ["--orig-src", source];
  const argv = ["conntrack", "-L", "-f", family.toLowerCase(), "-p", protocol.toLowerCase(), ...about] as const;
  for await (const line of lines(runner.stream([...argv]))) {
    const connection = parseConnection(line, family);
    if (connection !== undefined) yield connection;
  }
}
