import { describe, expect, test } from "vitest";
import { FakeNftables } from "../../src/fake/index.ts";
import { cases } from "./cases.ts";
import { Draft, expected, runCase } from "./draft.ts";

const NAME = "fairlead-test";

function draft(fill: (to: Draft) => void): Draft {
  const batch = new Draft("ip", NAME);
  fill(batch);
  return batch;
}

async function filled(): Promise<FakeNftables> {
  const nft = new FakeNftables();
  await nft.commit(draft((to) => to.addTable("one").chains("a")));
  return nft;
}

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
