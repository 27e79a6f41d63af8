/** What connection tracking says of the packets that a test sent through a node. */

import { isDeepStrictEqual } from "node:util";
import type { IPFamily, Protocol } from "@fairlead/core";
import { type Connection, listConnections, type Runner } from "@fairlead/kernel";

export async function connectionsOf(
  runner: Runner,
  family: IPFamily,
  protocols: readonly Protocol[],
): Promise<readonly Connection[]> {
  const connections: Connection[] = [];
  for (const protocol of protocols) {
    for await (const connection of listConnections(runner, family, protocol)) connections.push(connection);
  }
  return connections;
}

/**
 * Whether a rule masqueraded the connection. The node's own keep their address and get another port: one that is drawn
 * is the old one in one of some 30,000 connections.
 *
 * @param all what is tracked at the same time
 * @returns undefined if its port shows nothing: another connection to the same endpoint came first with this address
 *   and port, masqueraded itself perhaps. The kernel then gives it another port without any rule (nf_nat_used_tuple).
 */
export function isMasqueraded({ original, reply }: Connection, all: Iterable<Connection>): boolean | undefined {
  if (reply.destination !== original.source) return true;
  if (reply.destinationPort === original.sourcePort) return false;
  const wanted = { ...reply, destinationPort: original.sourcePort };
  return Array.from(all).some((other) => isDeepStrictEqual(other.reply, wanted)) ? undefined : true;
}
