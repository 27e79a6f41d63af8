import { socketText } from "@fairlead/base";
import type { Lab } from "@fairlead/lab/plain/lab";
import { type CasePacket, hosts, NODE_A, type Outcome, type OutcomeShares, waysOf, wayTo } from "@fairlead/testkit";
import { trackedPackets } from "./tracked-packets.ts";

const WAIT_MS = 400;

/**
 * Whether answers pass node-a by: sender and endpoints are elsewhere and see each other's own addresses. The sender
 * asked the frontend and heeds no answer of anybody else.
 */
export function answersPassBy({ from }: CasePacket, expected: Outcome): boolean {
  if (from.node === NODE_A.name || expected.verdict !== "endpoints") return false;
  return expected.landings.every(({ endpoint, masqueraded }) => !masqueraded && !isHere(endpoint));
}

function isHere(endpoint: string): boolean {
  const here = hosts.filter(({ node }) => node === NODE_A.name).flatMap(({ addresses }) => Object.values(addresses));
  return here.some((address) => endpoint.startsWith(socketText(address, 0).slice(0, -1)));
}

/** Sends requests that nobody will answer, and reads from the node's connection tracking where they went. */
export async function probeUnanswered(lab: Lab, packet: CasePacket, count: number): Promise<OutcomeShares> {
  const { from, source, destination: to, port, protocol } = packet;
  if (protocol === "SCTP") throw new Error("SCTP is read from connection tracking anyway");
  // What an earlier row left would count as this one's. There may be nothing to delete.
  const flow = ["-p", protocol.toLowerCase(), "-s", source, "-d", to, "--orig-port-dst", String(port)];
  await lab.runner("node-a").run(["sh", "-c", `conntrack -D "$@" 2> /dev/null || true`, "sh", ...flow]);
  await lab.peer(from).send({ protocol, to, port, source, count, parallel: 8, timeoutMs: WAIT_MS });
  const tracked = await trackedPackets(lab, packet);
  const ends = tracked.map(({ endpoint, masqueraded }) => wayTo(endpoint, masqueraded));
  return waysOf(ends.map((way) => ({ way, probability: 1 / ends.length })));
}
