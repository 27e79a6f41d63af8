import { hostHex, NftBatch, statements } from "@fairlead/netfilter/nft";
import { beforeAll, expect, test } from "vitest";
import { createRunner, type NftablesClient, openNftables, type Runner } from "../../src/index.ts";
import { inside, insideSuite, kernelSuite, program } from "../kernel-test.ts";

interface Kernel {
  readonly nft: NftablesClient;
  /** For `nft`. */
  readonly runner: Runner;
}

/** Elements with a time: what is left of it is read, and written again in another table. */
async function seeTimes({ nft, runner }: Kernel) {
  const sticky = { name: "sticky", key: ["ipv4_addr"], flags: ["dynamic", "timeout"], timeout: 10_000_000 } as const;
  const table = (name: string) =>
    new NftBatch("ip", name)
      .addTable()
      .addSet(sticky)
      .addSet({ ...sticky, name: "other" });
  const [own, shorter, none] = [hostHex(1), hostHex(2), hostHex(3)];
  await nft.commit(
    table("one").addElements("sticky", [
      { key: own, expires: 4_000_000 },
      { key: shorter, timeout: 3_000_000, expires: 2_000_000, comment: "x" },
      { key: none },
    ]),
  );
  const read = async (name: string) => {
    const sets = await nft.sets("ip", name, (set) => set.name === "sticky");
    return { names: [...sets.keys()], elements: [...(sets.get("sticky")?.elements.values() ?? [])].sort(byKey) };
  };
  await runner.run(["nft", "add", "set", "ip", "one", "macs", "{ type ether_addr; }"]);
  const first = await read("one");
  const all = [...(await nft.sets("ip", "one", () => true)).keys()];
  await nft.commit(table("two").addElements("sticky", first.elements));
  return { first, all, second: await read("two"), nowhere: [...(await nft.sets("ip", "three", () => true))] };
}

function byKey(one: { readonly key: string }, other: { readonly key: string }): number {
  return one.key < other.key ? -1 : 1;
}

/** Many times what a socket takes without asking for more. */
async function seeLarge({ nft }: Kernel) {
  const keys = Array.from({ length: 100_000 }, (_, at) => ({ key: hostHex(at) }));
  const batch = new NftBatch("ip", "large").addTable().addSet({ name: "many", key: ["ipv4_addr"], flags: [] });
  await nft.commit(batch.addElements("many", keys));
  const table = await nft.table("ip", "large");
  return { room: nft.roomFor(1 << 20) > 0, elements: table?.sets.get("many")?.elements.size };
}

/** More answers than the socket keeps. */
async function refusedOften({ nft }: Kernel): Promise<string> {
  const batch = new NftBatch("ip", "often").addTable();
  const expressions = statements.goTo("nowhere");
  for (let rule = 0; rule < 20_000; rule += 1) batch.addRule(`chain-${rule}`, { expressions });
  return nft.commit(batch).then(() => "accepted", String);
}

insideSuite("nf_tables by netlink, on the kernel", () => {
  let seen: Readonly<Record<"timed" | "often" | "large", unknown>>;

  beforeAll(async () => {
    seen = await inside(async ({ runner }) => {
      const nft = await openNftables();
      const kernel = { nft, runner };
      const result = {
        timed: await seeTimes(kernel),
        often: await refusedOften(kernel),
        large: await seeLarge(kernel),
      };
      await nft.close();
      return result;
    });
  });

  test("times of elements are read and written; only the sets that are wanted are read", () => {
    // Less than the test itself may take has passed.
    const left = (most: number) => expect.toSatisfy((expires) => expires > most - 600_000 && expires <= most);
    const sticky = {
      names: ["sticky"],
      elements: [
        { key: "01000000", expires: left(4_000_000) },
        { key: "02000000", timeout: 3_000_000, expires: left(2_000_000), comment: "x" },
        { key: "03000000", expires: left(10_000_000) },
      ],
    };
    expect(seen.timed).toEqual({ first: sticky, all: ["sticky", "other"], second: sticky, nowhere: [] });
  });

  test("where the kernel refuses thousands of messages, the first one is reported", () => {
    expect(seen.often).toMatch("table ip often: cannot add a rule of chain chain-0: ENOENT");
  });

  test("a transaction larger than a socket's usual buffer goes in one piece", () => {
    expect(seen.large).toEqual({ room: true, elements: 100_000 });
  });
});

kernelSuite("in a user namespace", () => {
  test("a transaction has the room that the kernel reports, and no more", async ({ skip }) => {
    const runner = createRunner({ prefix: ["unshare", "-Urn", "--"] });
    await runner.run(["true"]).catch(() => skip("no user namespaces here"));
    const { stdout } = await runner.run(program("room"), { timeoutMs: 0 });
    const { room, isBounded, length, written, refused } = JSON.parse(stdout);
    expect(room).toBeGreaterThan(200_000);
    expect(length).toBeGreaterThan(Math.min(room, 8 << 20) - 50_000);
    expect(written).toBe(true);
    if (isBounded) expect(refused).toMatch(`this user namespace allows at most ${room} (net.core.wmem_max)`);
    else expect(refused).toBe("accepted");
  });
});
