import { once } from "node:events";
import { connect, isIPv6 } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { PlanEndpoint } from "@fairlead/core";
import { relayed } from "./relayed.ts";
import { Opened } from "./servers.ts";

/**
 * A program: relays to each endpoint that is its argument, first alongside one that answers, then to nothing else, and
 * prints what became of a client. Run it in a network namespace, where no packet to such an endpoint leaves the
 * machine.
 */
for (const protocol of ["UDP", "TCP"] as const) {
  for (const address of process.argv.slice(2)) {
    const [first, only] = [await beside(protocol, address), await alone(protocol, address)];
    process.stdout.write(`${protocol} ${address}: ${first}; only that: ${only}\n`);
  }
}

async function beside(protocol: "UDP" | "TCP", address: string): Promise<string> {
  await using opened = new Opened();
  const good = await answering(opened, protocol, loopback(address));
  const options = { address: loopback(address), udpIdleTimeout: 60_000 };
  const { relay, traffic } = await relayed(opened, protocol, [endpoint(address, 53), good], options);
  const answer = protocol === "UDP" ? await ask(opened, relay.port, address) : await read(opened, relay.port, address);
  return `${answer}, passed over ${traffic.counts.passedOver}`;
}

async function alone(protocol: "UDP" | "TCP", address: string): Promise<string> {
  await using opened = new Opened();
  const options = { address: loopback(address), udpIdleTimeout: 60_000 };
  const { relay, traffic } = await relayed(opened, protocol, [endpoint(address, 53)], options);
  if (protocol === "UDP") (await opened.datagrams(loopback(address))).send("?", relay.port, loopback(address));
  else connect(relay.port, loopback(address)).on("error", () => {});
  while (traffic.counts.refused.unreachable === 0) await turn();
  return `refused ${traffic.counts.refused.unreachable}, sockets ${traffic.counts.sockets}`;
}

async function answering(opened: Opened, protocol: "UDP" | "TCP", host: string): Promise<PlanEndpoint> {
  if (protocol === "TCP") return opened.tcp((socket) => void socket.end("served"), host);
  return opened.udp(() => "served", host);
}

async function ask(opened: Opened, port: number, address: string): Promise<string> {
  const socket = await opened.datagrams(loopback(address));
  const answer = once(socket, "message");
  socket.send("?", port, loopback(address));
  return String((await answer)[0]);
}

async function read(opened: Opened, port: number, address: string): Promise<string> {
  const socket = connect(port, loopback(address));
  opened.defer(() => void socket.destroy());
  return String((await once(socket, "data"))[0]);
}

function loopback(address: string): string {
  return isIPv6(address) ? "::1" : "127.0.0.1";
}

function endpoint(address: string, port: number): PlanEndpoint {
  return { address, port, local: false };
}
