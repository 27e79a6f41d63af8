import { DEVICE } from "@fairlead/backend-ipvs";
import { RefusedCommands, renderServerKey, type SetCommand } from "@fairlead/netfilter";
import { service } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { address, ovn, type RunningAgent, runningAgent, slice, webNodePort as web } from "./support/running-agent.ts";

async function serving() {
  const flags = ["--proxy-mode=ipvs", "--cluster-cidr=10.144.0.0/16", "--exclude-cluster-cidr=10.244.0.0/16"];
  const one = await runningAgent({ mode: "ipvs", flags });
  await one.serve(web, ovn, slice("web", "10.144.154.71"), slice("ovn", "10.244.0.7"));
  return one;
}

function servers({ ipvs }: RunningAgent): Record<string, string[]> {
  return Object.fromEntries(
    ipvs.servers
      .servers()
      .map((server) => [
        renderServerKey(server),
        server.destinations.map(({ address: ip, port, weight }) => `${ip}:${port} ${weight}`),
      ]),
  );
}

test("the founding case: our service has its server and address, the other network's is nowhere", async () => {
  const one = await serving();
  expect(servers(one)).toEqual({
    "-t 10.96.67.75:80": ["10.144.154.71:80 1"],
    "-t 10.201.0.10:30080": ["10.144.154.71:80 1"],
  });
  expect([...(one.ipvs.links.device(DEVICE) ?? [])]).toEqual(["10.96.67.75"]);
  expect(JSON.stringify(one.ipvs.sets.sets().map(({ members }) => [...members]))).not.toContain("10.96.95.98");
});

test("node ports follow the node's addresses", async () => {
  const one = await serving();
  one.addresses.add(address("10.202.0.10"));
  await one.clock.advance(5_000);
  expect(Object.keys(servers(one))).toContain("-t 10.202.0.10:30080");
  one.addresses.remove("10.202.0.10");
  await one.clock.advance(5_000);
  expect(Object.keys(servers(one))).not.toContain("-t 10.202.0.10:30080");
});

test("what drains is looked after without any other reason to sync", async () => {
  const one = await serving();
  const server = { family: "IPv4", protocol: "TCP", address: "10.96.67.75", port: 80 } as const;
  one.ipvs.servers.connect(server, { address: "10.144.154.71", port: 80 }, 1);
  await one.source.put(slice("web", "10.144.154.72"));
  await one.clock.advance(20_000);
  expect(servers(one)["-t 10.96.67.75:80"]).toEqual(["10.144.154.71:80 0", "10.144.154.72:80 1"]);
  one.ipvs.servers.connect(server, { address: "10.144.154.71", port: 80 }, 0);
  await one.clock.advance(70_000);
  expect(servers(one)["-t 10.96.67.75:80"]).toEqual(["10.144.154.72:80 1"]);
});

test.each([
  ["ipvsadm --clear", ({ ipvs }: RunningAgent) => ipvs.servers.clear()],
  ["the device deleted", ({ ipvs }: RunningAgent) => ipvs.links.meddle({ kind: "delete-device", device: DEVICE })],
  ["a set emptied", ({ ipvs }: RunningAgent) => ipvs.sets.meddle({ kind: "flush", set: "KUBE-CLUSTER-IP" })],
  ["rules flushed", ({ tables }: RunningAgent) => tables.IPv4.flush("nat")],
])("%s by hand: restored within syncPeriod", async (_what, meddle) => {
  const one = await serving();
  const before = { servers: servers(one), nat: one.nat(), filter: one.filter() };
  meddle(one);
  await one.clock.advance(31_000);
  expect({ servers: servers(one), nat: one.nat(), filter: one.filter() }).toEqual(before);
  expect([...(one.ipvs.links.device(DEVICE) ?? [])]).toEqual(["10.96.67.75"]);
  expect(one.ipvs.sets.sets().find(({ name }) => name === "KUBE-CLUSTER-IP")?.members.size).toBe(1);
});

test.each([
  ["the device deleted", { kind: "delete-device" }, { gone: true }],
  ["an address taken off", { kind: "delete-address", address: "10.96.67.75" }, { gone: true, address: "10.96.67.75" }],
  [
    "another network's address put on",
    { kind: "add-address", address: "10.96.95.98" },
    { gone: false, address: "10.96.95.98" },
  ],
] as const)("%s by hand: reported by the kernel, and repaired at once", async (_what, deed, change) => {
  const one = await serving();
  one.ipvs.links.meddle({ ...deed, device: DEVICE });
  one.addresses.notify(change);
  await one.clock.advance(2_000);
  expect([...(one.ipvs.links.device(DEVICE) ?? [])]).toEqual(["10.96.67.75"]);
});

test("changes of its own make it look at nothing", async () => {
  const one = await serving();
  one.addresses.notify({ gone: false, address: "10.96.67.75" });
  one.addresses.notify({ gone: true, address: "10.96.95.98" });
  const before = one.ipvs.links.faults.calls.length;
  await one.clock.advance(2_000);
  expect(one.ipvs.links.faults.calls).toHaveLength(before);
});

test("a member that its set has no room for is reported once, and all else is served", async () => {
  const one = await serving();
  const refuse = one.ipvs.sets.change.bind(one.ipvs.sets);
  one.ipvs.sets.change = async (commands) => {
    const [full, others] = [commands.filter(isOfNew), commands.filter((command) => !isOfNew(command))];
    await refuse(others);
    const refused = full.map((command) => ({
      command,
      text: `${command.kind} ${JSON.stringify(command)}: the set is full`,
    }));
    if (refused.length > 0) throw new RefusedCommands(refused);
  };
  await one.source.put(
    service("new", { clusterIPs: ["10.96.1.1"], ports: [{ port: 80 }] }),
    slice("new", "10.144.1.9"),
  );
  await one.clock.advance(120_000);
  expect(Object.keys(servers(one))).toContain("-t 10.96.1.1:80");
  const reports = one.log.lines.filter(({ message }) => message.startsWith("The kernel refused an object"));
  expect(reports.map(({ fields }) => String(fields["object"]))).toEqual([
    expect.stringMatching(/10\.96\.1\.1,tcp:80.*the set is full/),
  ]);
  expect(one.log.messages("error")).toHaveLength(1);
});

function isOfNew(command: SetCommand): boolean {
  return command.kind === "add" && command.member.startsWith("10.96.1.1,");
}
