import { describe, expect, test } from "vitest";
import { FakeNftables } from "../../src/fake/index.ts";
import { cases } from "./cases.ts";
import { Draft, expected, runCase } from "./draft.ts";

const NAME = "fairlead-test";

function draft(fill: (to: Draft) => void = () => {}): Draft {
  const batch = new Draft("ip", NAME);
  fill(batch);
  return batch;
}

const small = () =>
  draft((to) =>
    to
      .addTable("one")
      .chains("a")
      .addresses("s", { flags: ["dynamic", "timeout"], timeout: 10_000 }),
  );

async function filled(options: ConstructorParameters<typeof FakeNftables>[0] = {}): Promise<FakeNftables> {
  const nft = new FakeNftables(options);
  await nft.commit(small());
  return nft;
}

describe("elements with a time", () => {
  test("are added by packets, renewed, listed with the time that is left, and go", async () => {
    let now = 0;
    const nft = await filled({ clock: { monotonic: () => now } });
    const key = draft().address(1);
    const there = () => [...(nft.tableNow("ip", NAME)?.sets.get("s")?.elements.values() ?? [])];
    expect(nft.remember("ip", NAME, "s", { key })).toBe(true);
    now = 4_000;
    expect(there()).toEqual([{ key, expires: 6_000 }]);
    nft.remember("ip", NAME, "s", { key });
    now = 13_999;
    expect(there()).toEqual([{ key, expires: 1 }]);
    now = 14_000;
    expect(there()).toEqual([]);
  });

  test("are read with their set, by those who want it", async () => {
    const nft = await filled({ clock: { monotonic: () => 0 } });
    const key = draft().address(1);
    nft.remember("ip", NAME, "s", { key });
    await nft.commit(draft((to) => to.addresses("t")));
    const sets = await nft.sets("ip", NAME, ({ flags }) => flags.includes("dynamic"));
    expect([...sets].map(([name, { elements }]) => [name, [...elements.values()]])).toEqual([
      ["s", [{ key, expires: 10_000 }]],
    ]);
    expect((await nft.sets("ip", "none", () => true)).size).toBe(0);
  });

  test("a full set remembers no more, until something goes", async () => {
    let now = 0;
    const nft = await filled({ clock: { monotonic: () => now } });
    await nft.commit(draft((to) => to.addresses("t", { flags: ["dynamic", "timeout"], timeout: 1000, size: 1 })));
    const add = (n: number) => nft.remember("ip", NAME, "t", { key: draft().address(n) });
    expect([add(1), add(2), add(1)]).toEqual([true, false, true]);
    now = 1_000;
    expect(add(2)).toBe(true);
  });
});

/** As the kernel with flowtables does (nf_tables_newflowtable, nf_tables_delflowtable). */
describe("flowtables", () => {
  const devices = (nft: FakeNftables) => nft.tableNow("ip", NAME)?.flowtables?.get("f")?.devices;
  const flowtable = (...names: string[]) => ({ name: "f", priority: 0, devices: names });
  const offload = { expressions: [{ kind: "flow-offload", flowtable: "f" }] } as const;

  test("get devices in addition, lose those that go, and go when no rule uses them", async () => {
    const nft = await filled();
    for (const device of ["veth1", "veth2"]) nft.addDevice(device);
    await nft.commit(draft((to) => to.addFlowtable({ ...flowtable("veth1"), counter: true }).addRule("a", offload)));
    await nft.commit(draft((to) => to.addFlowtable(flowtable("veth1", "veth2"))));
    expect(nft.tableNow("ip", NAME)?.flowtables?.get("f")).toEqual({ ...flowtable("veth1", "veth2"), counter: true });
    await expect(nft.commit(draft((to) => to.deleteFlowtable("f")))).rejects.toMatchObject({ code: "EBUSY" });
    nft.deleteDevice("veth1");
    await nft.commit(draft((to) => to.deleteDevices("f", ["veth2"])));
    expect(devices(nft)).toEqual([]);
    await nft.commit(draft((to) => to.flushChain("a").deleteFlowtable("f")));
    expect(devices(nft)).toBeUndefined();
  });

  test("take no device that does not exist, and none of another one of the table", async () => {
    const nft = await filled();
    nft.addDevice("veth1");
    const commit = (fill: (to: Draft) => void) => nft.commit(draft(fill));
    await expect(commit((to) => to.addFlowtable(flowtable("veth1", "gone")))).rejects.toMatchObject({ code: "ENOENT" });
    await commit((to) => to.addFlowtable(flowtable("veth1")));
    const other = { ...flowtable("veth1"), name: "g" };
    await expect(commit((to) => to.addFlowtable(other))).rejects.toMatchObject({ code: "EEXIST" });
    await expect(commit((to) => to.deleteDevices("f", ["lo"]))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(
      commit((to) => to.addRule("a", { expressions: [{ ...offload.expressions[0], flowtable: "g" }] })),
    ).rejects.toMatchObject({ code: "ENOENT" });
    expect(devices(nft)).toEqual(["veth1"]);
  });
});

test("a map is looked up only where its value goes somewhere", async () => {
  const nft = await filled();
  const look = (to: Draft) => to.verdicts("v").addRule("a", { expressions: [{ kind: "lookup", set: "v", from: 0 }] });
  await expect(nft.commit(draft(look))).rejects.toMatchObject({ code: "EINVAL" });
});

describe("faults", () => {
  test("a message is refused as said, and nothing is done", async () => {
    const nft = await filled();
    nft.faults.failNext({ kind: "fail", errno: "EBUSY", message: 2 });
    await expect(nft.commit(draft((to) => to.chains("b").deleteChain("a")))).rejects.toThrow(
      `table ip ${NAME}: cannot delete chain a: EBUSY`,
    );
    expect([...(nft.tableNow("ip", NAME)?.chains.keys() ?? [])]).toEqual(["a"]);
    nft.faults.failNext();
    await expect(nft.commit(draft((to) => to.chains("b")))).rejects.toMatchObject({
      code: "ENOMEM",
      object: undefined,
    });
  });

  test("an answer is lost before the commit, or after it", async () => {
    const nft = await filled();
    nft.faults.failNext({ kind: "kill" });
    await expect(nft.commit(draft((to) => to.chains("b")))).rejects.toMatchObject({ code: "ENOBUFS" });
    nft.faults.failNext({ kind: "lost" });
    await expect(nft.commit(draft((to) => to.chains("c")))).rejects.toMatchObject({ code: "ENOBUFS" });
    nft.faults.failNext({ kind: "kill" });
    await expect(nft.table("ip", NAME)).rejects.toMatchObject({ code: "ENOBUFS" });
    expect([...(nft.tableNow("ip", NAME)?.chains.keys() ?? [])]).toEqual(["a", "c"]);
  });

  test("there is no room for more than a user namespace gives", async () => {
    const nft = new FakeNftables({ room: 200 });
    expect(nft.roomFor(1_000)).toBe(200);
    await expect(nft.commit(small())).rejects.toMatchObject({ code: "EMSGSIZE" });
  });
});

describe("others", () => {
  test("raise the generation and are reported to watchers; own transactions are not", async () => {
    const nft = await filled();
    const stop = new AbortController();
    const news: unknown[] = [];
    const watching = (async () => {
      for await (const one of nft.watch({ signal: stop.signal, tables: [NAME] })) news.push(one);
    })();
    const before = nft.generationNow;
    nft.meddle(draft((to) => to.deleteChain("a")));
    nft.meddle(new Draft("ip6", "other").addTable());
    await nft.commit(draft((to) => to.chains("b")));
    nft.flush({ id: 7, name: "admin" });
    nft.loseNews();
    await new Promise((resolve) => setImmediate(resolve));
    stop.abort();
    await watching;
    expect(news).toEqual([
      {
        kind: "transaction",
        generation: before + 1,
        process: { id: 4711, name: "nft" },
        tables: [{ family: "ip", name: NAME }],
      },
      {
        kind: "transaction",
        generation: before + 4,
        process: { id: 7, name: "admin" },
        tables: [
          { family: "ip", name: NAME },
          { family: "ip6", name: "other" },
        ],
      },
      { kind: "lost", tables: [] },
    ]);
    expect(await nft.table("ip", NAME)).toBeUndefined();
  });

  test("a table that was put there is as if it had been written", async () => {
    const nft = await filled();
    nft.meddle(
      draft((to) => to.base("nat").jumps("nat", "a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" })),
    );
    const table = nft.tableNow("ip", NAME);
    if (table === undefined) throw new Error("it was written");
    const other = new FakeNftables();
    other.put(table);
    const withoutHandles = (text: unknown) => JSON.stringify(text, (key, value) => (key === "handle" ? 0 : value));
    expect(withoutHandles([...(other.tableNow("ip", NAME)?.chains.values() ?? [])])).toBe(
      withoutHandles([...table.chains.values()]),
    );
    await expect(other.commit(draft((to) => to.deleteChain("a")))).rejects.toMatchObject({ code: "EBUSY" });
    await other.commit(draft((to) => to.flushChain("nat").flushSet("v").deleteChain("a")));
  });
});

describe.for(["ip", "ip6"] as const)("in memory: %s", (family) => {
  test.for(cases)("$name", async (given) => {
    expect(await runCase(new FakeNftables(), family, given)).toEqual(expected(given));
  });
});
