import { settled } from "@fairlead/base/testing";
import { endpointSlice, service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { address, ovn, type RunningAgent, runningAgent, webNodePort as web } from "./support/running-agent.ts";

const dns = service("dns", { clusterIPs: ["10.96.0.10"], ports: [{ port: 53, protocol: "UDP" }] });

function sliceOf(name: string, protocol: "TCP" | "UDP", port: number, ...addresses: string[]) {
  const endpoints = addresses.map((one) => ({ address: one }));
  return endpointSlice(`${name}-1`, { service: name, family: "IPv4", ports: [{ port, protocol }], endpoints });
}

async function start() {
  const flags = ["--proxy-mode=userspace", "--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16"];
  const one = await runningAgent({ mode: "userspace", flags });
  await settled();
  return one;
}

async function serving() {
  const one = await start();
  await serve(one);
  return one;
}

async function serve(one: RunningAgent) {
  await one.serve(
    ...[web, sliceOf("web", "TCP", 80, "10.144.154.71")],
    ...[dns, sliceOf("dns", "UDP", 53, "10.144.154.72")],
    ...[ovn, sliceOf("ovn", "TCP", 80, "10.244.0.7")],
  );
}

function socketOf({ sockets }: RunningAgent, name: string): string {
  const key = sockets.listening.find((one) => {
    const [socket = "", protocol = ""] = one.split(" ");
    return sockets.serviceAt(protocol, socket) === name;
  });
  return key?.split(" ")[0] ?? "";
}

test("the founding case: our service has a relay, the other network's neither rule nor socket", async () => {
  const one = await serving();
  const socket = socketOf(one, "default/web");
  expect(one.sockets.ask("tcp", socket, "10.144.1.5")).toMatchObject({ address: "10.144.154.71", port: 80 });
  expect(one.nat()).toContain(
    `-A KUBE-PORTALS-CONTAINER -d 10.96.67.75/32 -p tcp -m comment --comment "default/web" -m tcp --dport 80 -j DNAT --to-destination ${socket}`,
  );
  expect([...one.nat(), ...one.filter()].join("\n")).not.toContain("10.96.95.98");
  expect(socketOf(one, "default/ovn")).toBe("");
});

test("an endpoint that comes or goes takes no process", async () => {
  const one = await serving();
  const calls = one.faults.IPv4.calls.length;
  await one.source.put(sliceOf("web", "TCP", 80, "10.144.154.79"));
  await one.clock.advance(2_000);
  expect(one.sockets.ask("tcp", socketOf(one, "default/web"), "x")?.address).toBe("10.144.154.79");
  expect(one.faults.IPv4.calls.length).toBe(calls);
});

test("relays move when the node loses the address that they listen on", async () => {
  const one = await serving();
  one.addresses.add(address("10.202.0.10"));
  await one.clock.advance(5_000);
  expect(socketOf(one, "default/web")).toMatch(/^10\.201\.0\.10:/);
  one.addresses.remove("10.201.0.10");
  await one.clock.advance(5_000);
  expect(socketOf(one, "default/web")).toMatch(/^10\.202\.0\.10:/);
  expect(one.sockets.listening.join()).not.toContain("10.201.0.10");
  expect(one.nat().join("\n")).not.toContain("10.201.0.10");
});

test("UDP entries that lead to a relay stay, those to a socket of the process before are deleted", async () => {
  const one = await start();
  const flow = (replySource: string, replyPort: number) => ({
    family: "IPv4" as const,
    protocol: "UDP" as const,
    originalDestination: "10.96.0.10",
    originalPort: 53,
    replySource,
    replyPort,
  });
  one.conntrack.track(flow("10.201.0.10", 39_999));
  await serve(one);
  expect(one.conntrack.entries).toEqual([]);
  const [host = "", port = ""] = socketOf(one, "default/dns").split(":");
  one.conntrack.track(flow(host, Number(port)));
  await one.source.put(sliceOf("dns", "UDP", 53, "10.144.154.73"));
  await one.clock.advance(2_000);
  expect(one.conntrack.entries).toHaveLength(1);
});

test("flushed by hand: restored within syncPeriod", async () => {
  const one = await serving();
  const before = { nat: one.nat(), filter: one.filter() };
  one.tables.IPv4.flush("nat");
  await one.clock.advance(31_000);
  expect({ nat: one.nat(), filter: one.filter() }).toEqual(before);
});

test("at its end the sockets close and the rules stay", async () => {
  const one = await serving();
  const rules = one.nat();
  await one.stop();
  expect(one.sockets.listening).toEqual([]);
  expect(one.nat()).toEqual(rules);
});
