import { FakeNftables } from "@fairlead/kernel/fake";
import { NftBatch, type NftTable, ruleText, valueText } from "@fairlead/netfilter/nft";
import { noChange } from "@fairlead/testkit/histories";
import { describe, expect, test } from "vitest";
import { createNftablesBackend, type NftablesOptions, type NftablesPort, planTable } from "../src/index.ts";
import { groupOfEveryKind, planOfEveryKind } from "./support/every-kind.ts";
import { lookedAt } from "./support/tables.ts";
import { recorded } from "./support/world.ts";

const CHAIN = "fast-path-forward";
const PLAN = planOfEveryKind("IPv4");

function only(...groups: readonly ReturnType<typeof groupOfEveryKind>[]) {
  return { ...PLAN, groups: new Map(groups.map((group) => [group.id, group])) };
}

function elementsOf(table: NftTable, name: string): readonly string[] {
  const set = table.sets.get(name);
  return set === undefined ? [] : Array.from(set.elements.values(), ({ key }) => valueText(set.key, key)).sort();
}

describe("the table", () => {
  test("has a flowtable that counts, and a chain behind all filter chains that fills it", () => {
    const table = planTable(PLAN, { fastPath: true });
    expect([...(table.flowtables?.values() ?? [])]).toEqual([
      { name: "fast-path", priority: 0, devices: [], counter: true },
    ]);
    const chain = table.chains.get(CHAIN);
    expect(chain?.base).toEqual({ type: "filter", hook: "forward", priority: 10, policy: "accept" });
    const rulesOf = (name: string) => table.chains.get(name)?.rules.map((rule) => ruleText(rule, table));
    const to = (words: string) =>
      ["tcp", "udp"].map((protocol) => `meta l4proto ${protocol} ${words} flow add @fast-path`);
    expect(rulesOf(CHAIN)).toEqual(["ct status dnat ct direction original ct state established jump fast-path-check"]);
    expect(rulesOf("fast-path-check")).toEqual([
      ...to("ct original ip daddr . meta l4proto . ct original proto-dst @fast-path-services"),
      "ct original ip daddr @nodeport-ips jump fast-path-nodeports-check",
    ]);
    expect(rulesOf("fast-path-nodeports-check")).toEqual(
      to("meta l4proto . ct original proto-dst @fast-path-nodeports"),
    );
  });

  test("lists each frontend that leads to endpoints, of TCP and UDP", () => {
    const groups = (["TCP", "UDP", "SCTP"] as const).map((protocol, at) =>
      groupOfEveryKind("IPv4", `web-${at}`, at + 1, protocol),
    );
    const table = planTable(only(...groups), { fastPath: true });
    const at = (n: number, protocol: string) => [n, n + 20, n + 40].map((last) => `10.96.0.${last} . ${protocol} . 80`);
    expect(elementsOf(table, "fast-path-services")).toEqual([...at(1, "tcp"), ...at(2, "udp")].sort());
    expect(elementsOf(table, "fast-path-nodeports")).toEqual([
      "tcp . 30001",
      "tcp . 31001",
      "udp . 30002",
      "udp . 31002",
    ]);
  });

  test("leaves out services that ask for it", () => {
    const group = groupOfEveryKind("IPv4", "web", 1, "TCP");
    const without = planTable(only({ ...group, fastPath: "off" }), { fastPath: true });
    expect(elementsOf(without, "fast-path-services")).toEqual([]);
    expect(elementsOf(without, "service-ips")).toHaveLength(3);
  });

  test("skips clients that another network serves itself, whichever proxy translates their connections", () => {
    const node = { ...PLAN.node, excludedClients: ["10.244.0.0/16"] };
    const rulesOf = (table: NftTable) =>
      table.chains.get("fast-path-check")?.rules.map((rule) => ruleText(rule, table));
    const [first = "", ...others] = rulesOf(planTable({ ...PLAN, node }, { fastPath: true })) ?? [];
    expect(first).toContain("ct original ip daddr @foreign-cluster-ips ct original ip saddr @excluded-clients return");
    expect(others).toEqual(rulesOf(planTable(PLAN, { fastPath: true })));
  });

  test("leaves out node ports that are served on every address", () => {
    const plan = { ...PLAN, node: { ...PLAN.node, nodePortAddresses: { kind: "all" } as const } };
    const table = planTable(plan, { fastPath: true });
    expect(table.chains.get("fast-path-check")?.rules).toHaveLength(2);
    expect(table.chains.has("fast-path-nodeports-check")).toBe(false);
    expect(table.sets.has("fast-path-nodeports")).toBe(false);
  });

  test("alongside another proxy comes before that one's", () => {
    const table = planTable(PLAN, { fastPath: true, serviceProxyName: "second" });
    expect(table.chains.get(CHAIN)?.base?.priority).toBe(9);
  });

  test("asks a forwarded packet once whether it is a connection's first one", () => {
    const table = planTable(PLAN, { fastPath: true });
    const rulesOf = (name: string) => table.chains.get(name)?.rules.map((rule) => ruleText(rule, table));
    expect(rulesOf("filter-forward")).toEqual(["ct state new jump forward-check"]);
    expect(rulesOf("forward-check")).toEqual(["jump service-endpoints-check", "jump cluster-ips-check"]);
  });

  test("without the option has nothing of it", () => {
    const table = planTable(PLAN);
    expect(table.flowtables).toBeUndefined();
    const own = (name: string) => name.includes("fast") || name === "forward-check";
    expect([...table.chains.keys(), ...table.sets.keys()].filter(own)).toEqual([]);
    expect(table.chains.get("filter-forward")?.rules).toHaveLength(2);
  });
});

describe("what checks source ranges", () => {
  const isOf = (name: string) => name.includes("pre-dnat") || name === "firewall-check" || name === "firewall-ips";
  const partsOf = ({ chains, sets }: NftTable) => [...chains.keys(), ...sets.keys()].filter(isOf);
  const ALL = ["firewall-check", "filter-prerouting-pre-dnat", "filter-output-pre-dnat", "firewall-ips"];

  function opened() {
    const fake = new FakeNftables();
    const table = () => fake.tableNow("ip", "kube-proxy");
    return { fake, table, backend: createNftablesBackend(fake, { family: "IPv4", fastPath: true }) };
  }

  const ranged = only(groupOfEveryKind("IPv4", "web", 1, "TCP"));
  const open = only(
    ...[...ranged.groups.values()].map((group) => ({
      ...group,
      frontends: group.frontends.map(({ gate: _, ...frontend }) => frontend),
    })),
  );

  const before = (id: string) => {
    const group = open.groups.get(id);
    return group && { before: group };
  };

  test("is there with the services that have some, as without the option for all", () => {
    expect(partsOf(planTable(ranged, { fastPath: true })).sort()).toEqual([...ALL].sort());
    expect(partsOf(planTable(open, { fastPath: true }))).toEqual([]);
    expect(partsOf(planTable(open)).sort()).toEqual([...ALL].sort());
  });

  test("comes with the first one, and what is found then is as written", async () => {
    const { backend, table } = opened();
    await backend.sync(open);
    const groups = new Map(Array.from(ranged.groups, ([id, after]) => [id, { ...before(id), after }] as const));
    await backend.apply(ranged, { ...noChange, groups });
    const found = table();
    expect(found && partsOf(found).sort()).toEqual([...ALL].sort());
    expect(found?.chains.get("filter-prerouting-pre-dnat")?.base?.priority).toBe(-110);
    expect(await lookedAt(backend)).toBeUndefined();
  });
});

describe("devices", () => {
  async function open(more: Partial<NftablesOptions> = {}) {
    const fake = new FakeNftables();
    const wanted = new Map<string, number>();
    const refused: string[] = [];
    const { port, transactions } = recorded(fake);
    const backend = createNftablesBackend(port, {
      family: "IPv4",
      fastPath: true,
      devices: () => wanted,
      onRefusedDevice: (device) => refused.push(device),
      ...more,
    });
    const come = (name: string, index: number) => {
      fake.addDevice(name);
      wanted.set(name, index);
    };
    const devices = () => fake.tableNow("ip", "kube-proxy")?.flowtables?.get("fast-path")?.devices;
    return { fake, backend, wanted, come, devices, transactions, refused };
  }

  test("are in the flowtable after each sync, and follow changes with a transaction each", async () => {
    const { backend, come, devices, wanted, transactions } = await open();
    come("cali1", 4);
    await backend.sync(PLAN);
    expect(devices()).toEqual(["cali1"]);
    transactions.length = 0;
    come("cali2", 5);
    await backend.updateDevices();
    expect(devices()).toEqual(["cali1", "cali2"]);
    wanted.delete("cali1");
    await backend.updateDevices();
    expect(devices()).toEqual(["cali2"]);
    await backend.updateDevices();
    expect(transactions).toHaveLength(2);
    await backend.sync(PLAN);
    expect(devices()).toEqual(["cali2"]);
  });

  test("that come while a change of endpoints is written are added", async () => {
    const fake = new FakeNftables();
    const wanted = new Map<string, number>();
    const written = Promise.withResolvers<void>();
    let waits = false;
    const { port } = recorded(fake);
    const slow: NftablesPort = {
      ...port,
      commit: async (batch) => {
        if (waits) await written.promise;
        await port.commit(batch);
      },
    };
    const backend = createNftablesBackend(slow, { family: "IPv4", fastPath: true, devices: () => wanted });
    const group = groupOfEveryKind("IPv4", "web", 1, "TCP");
    await backend.sync(only(group));
    waits = true;
    const after = { ...group, cluster: group.cluster.slice(1) };
    const applied = backend.apply(only(after), {
      ...noChange,
      groups: new Map([[group.id, { before: group, after }]]),
    });
    fake.addDevice("cali1");
    wanted.set("cali1", 4);
    const updated = backend.updateDevices();
    written.resolve();
    await Promise.all([applied, updated]);
    expect(fake.tableNow("ip", "kube-proxy")?.flowtables?.get("fast-path")?.devices).toEqual(["cali1"]);
  });

  test("that went before the kernel heard of them hold up neither a sync nor each other", async () => {
    const { backend, come, devices, fake, refused } = await open();
    come("cali1", 4);
    come("cali2", 5);
    fake.deleteDevice("cali1");
    expect((await backend.sync(PLAN)).kind).toBe("full");
    expect(devices()).toEqual(["cali2"]);
    expect(refused).toEqual([]);
  });

  test("that come back under their names are put back", async () => {
    const { backend, come, devices, fake } = await open();
    come("cali1", 4);
    await backend.sync(PLAN);
    fake.deleteDevice("cali1");
    expect(devices()).toEqual([]);
    come("cali1", 9);
    await backend.updateDevices();
    expect(devices()).toEqual(["cali1"]);
  });

  test("that the kernel refuses are reported once, and the others are added", async () => {
    const { backend, come, devices, fake, refused } = await open();
    await backend.sync(PLAN);
    come("cali1", 4);
    come("cali2", 5);
    const other = { name: "other", priority: 0, devices: ["cali1"] };
    fake.meddle(new NftBatch("ip", "kube-proxy").addFlowtable(other));
    await backend.updateDevices();
    expect([devices(), refused]).toEqual([["cali2"], ["cali1"]]);
    come("cali3", 6);
    await backend.updateDevices();
    expect([devices(), refused]).toEqual([["cali2", "cali3"], ["cali1"]]);
  });

  test("that another program takes out are found and put back", async () => {
    const { backend, come, devices, fake } = await open();
    come("cali1", 4);
    await backend.sync(PLAN);
    expect(await lookedAt(backend)).toBeUndefined();
    fake.meddle(new NftBatch("ip", "kube-proxy").deleteDevices("fast-path", ["cali1"]));
    expect(await lookedAt(backend)).toMatchObject({
      what: ["flowtable fast-path lacks the devices cali1"],
      repaired: true,
    });
    expect(devices()).toEqual(["cali1"]);
  });

  test("are not touched before the table is there", async () => {
    const { backend, come, transactions } = await open();
    come("cali1", 4);
    await backend.updateDevices();
    expect(transactions).toEqual([]);
  });
});

test("a flowtable that is gone has the table made anew", async () => {
  const fake = new FakeNftables();
  const backend = createNftablesBackend(fake, { family: "IPv4", fastPath: true });
  await backend.sync(PLAN);
  const users = ["fast-path-check", "fast-path-nodeports-check"];
  const batch = users.reduce((made, name) => made.flushChain(name), new NftBatch("ip", "kube-proxy"));
  fake.meddle(batch.deleteFlowtable("fast-path"));
  const difference = await lookedAt(backend);
  expect(difference?.repaired).toBe(false);
  expect(difference?.what).toContain("flowtable fast-path is missing");
});
