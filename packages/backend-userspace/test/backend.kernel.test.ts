import { once } from "node:events";
import { connect, isIPv6 } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import type { PlanEndpoint } from "@fairlead/core";
import { openIptables } from "@fairlead/kernel";
import { FOREIGN_CHAIN, foreignRules, scriptOf } from "@fairlead/testkit/foreign";
import { insideTest, kernelTest } from "@fairlead/testkit/real-kernel";
import { expect } from "vitest";
import { FakeSockets } from "../src/fake/index.ts";
import { createUserspaceBackend } from "../src/index.ts";
import { Opened, relayed } from "./support/servers.ts";
import { World } from "./support/world.ts";

for (const variant of ["nft", "legacy"] as const) {
  kernelTest(
    `${variant}: rules of others, whatever their text, do not stop us and are left as they were`,
    async ({ runner }) => {
      const iptables = (...words: readonly string[]) => runner.run([`iptables-${variant}`, "-w", "5", ...words]);
      const saved = async (table: string) =>
        (await runner.run([`iptables-${variant}-save`, "-t", table])).stdout.replaceAll(/^# .* on .*\n/gm, "");
      for (const table of ["nat", "filter"]) await iptables("-t", table, "-N", FOREIGN_CHAIN);
      await runner.run(["sh"], { input: scriptOf(`iptables-${variant}`, "-A", foreignRules) });
      const before = [await saved("nat"), await saved("filter")];

      const port = await openIptables(runner, { family: "IPv4", variant });
      const backend = createUserspaceBackend(port, { open: new FakeSockets().open });
      const plan = new World().plan();
      for (let time = 0; time < 2; time++) {
        await backend.sync(plan);
        expect(await backend.difference(plan)).toBeUndefined();
      }
      expect((await saved("nat")).match(/-j KUBE-PORTALS-HOST$/gm)).toHaveLength(1);
      await backend.cleanup();
      expect([await saved("nat"), await saved("filter")]).toEqual(before);
    },
  );
}

/** What `connect` or `send` refuses at once: no route, class E, broadcast, multicast, link-local without its device. */
const ADDRESSES = [
  "192.0.2.55",
  "240.0.0.1",
  "255.255.255.255",
  "127.255.255.255",
  "224.0.0.1",
  "2001:db8::5",
  "fe80::1",
  "ff02::1",
];

/** Relays to each, first alongside an endpoint that answers, then to nothing else; no packet leaves the machine. */
insideTest("no endpoint ends the process: one that cannot be reached is passed over", async () => {
  for (const protocol of ["UDP", "TCP"] as const) {
    for (const address of ADDRESSES) {
      expect(await nextToGood(protocol, address), `${protocol} ${address}`).toEqual({
        answer: "served",
        passedOver: 1,
      });
      expect(await onlyOne(protocol, address), `${protocol} ${address}`).toEqual({ refused: 1, sockets: 1 });
    }
  }
});

async function nextToGood(protocol: "UDP" | "TCP", address: string) {
  await using opened = new Opened();
  const good = await answering(opened, protocol, loopback(address));
  const options = { address: loopback(address) };
  const { relay, traffic } = await relayed(opened, protocol, [endpoint(address, 53), good], options);
  const answer = protocol === "UDP" ? await ask(opened, relay.port, address) : await read(opened, relay.port, address);
  return { answer, passedOver: traffic.counts.passedOver };
}

async function onlyOne(protocol: "UDP" | "TCP", address: string) {
  await using opened = new Opened();
  const options = { address: loopback(address) };
  const { relay, traffic } = await relayed(opened, protocol, [endpoint(address, 53)], options);
  if (protocol === "UDP") (await opened.datagrams(loopback(address))).send("?", relay.port, loopback(address));
  else connect(relay.port, loopback(address)).on("error", () => {});
  while (traffic.counts.refused.unreachable === 0) await turn();
  return { refused: traffic.counts.refused.unreachable, sockets: traffic.counts.sockets };
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
