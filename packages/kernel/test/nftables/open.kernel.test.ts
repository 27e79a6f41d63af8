import {
  addressHex,
  hostHex,
  NftBatch,
  type NftFamily,
  type NftSet,
  type NftTable,
  padded,
  portHex,
  statements,
} from "@fairlead/netfilter/nft";
import { beforeAll, expect, test } from "vitest";
import { createRunner, type NftablesClient, NftablesError, openNftables, type Runner } from "../../src/index.ts";
import { inside, insideSuite, kernelSuite, program } from "../kernel-test.ts";

const NAME = "fairlead-test";
const ADDRESSES = {
  ip: { service: "10.96.0.10", pods: ["10.144.1.5", "10.144.2.6"], pod: "10.144.0.0/16" },
  ip6: { service: "fd00:10:96::10", pods: ["fd00:144::5", "fd00:144:0:1::6"], pod: "fd00:144::/48" },
} as const;

const { addressIn, goTo, jump, loadKey, lookUp, newConnection, setMark } = statements;

function setsOf(family: NftFamily): readonly Omit<NftSet, "elements">[] {
  const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
  return [
    { name: "cluster-ips", key: [address], flags: [], comment: "Active ClusterIPs" },
    { name: "service-ips", key: [address, "inet_proto", "inet_service"], data: "verdict", flags: [] },
    {
      name: "endpoints-4",
      key: [address, "inet_proto", "inet_service", "integer"],
      data: [address, "inet_service"],
      flags: [],
      comment: "endpoints",
    },
    { name: "affinity", key: [address], flags: ["timeout", "dynamic"], timeout: 10_800_000 },
  ];
}

function build(family: NftFamily): NftBatch {
  const { service, pods, pod } = ADDRESSES[family];
  const batch = new NftBatch(family, NAME).addTable("rules of a test");
  const base = { type: "nat", hook: "prerouting", priority: -100, policy: "accept" } as const;
  batch.addChain({ name: "nat-prerouting", base }).addChain({ name: "services" }).addChain({ name: "endpoints-4" });
  for (const set of setsOf(family)) batch.addSet(set);
  const key = padded(addressHex(service)) + padded("06") + padded(portHex(80));
  batch.addElements("cluster-ips", [{ key: addressHex(service) }]);
  batch.addElements("service-ips", [{ key, value: { kind: "goto", chain: "endpoints-4" }, comment: "default/web" }]);
  batch.addElements(
    "endpoints-4",
    pods.map((address, slot) => ({
      key: key + hostHex(slot),
      value: padded(addressHex(address)) + padded(portHex(8080)),
    })),
  );
  batch.addRule("nat-prerouting", { expressions: [...newConnection, ...jump("services")] });
  const masquerade = [
    ...lookUp(family, ["daddr"], "cluster-ips"),
    ...addressIn(family, "saddr", pod, "!="),
    ...setMark(0x4000),
  ];
  batch.addRule("services", { expressions: masquerade, comment: "from outside" });
  batch.addRule("services", { expressions: lookUp(family, ["daddr", "l4proto", "dport"], "service-ips", "verdict") });
  const { expressions, next } = loadKey(family, ["daddr", "l4proto", "dport"]);
  const port = family === "ip" ? 1 : 4;
  batch.addRule("endpoints-4", {
    expressions: [
      ...expressions,
      { kind: "numgen", modulus: 4, to: next },
      { kind: "lookup", set: "endpoints-4", from: 0, to: 0 },
      { kind: "nat", family, address: 0, port },
    ],
  });
  return batch;
}

interface Kernel {
  readonly nft: NftablesClient;
  /** For `nft`. */
  readonly runner: Runner;
}

async function refusal(work: Promise<void>): Promise<string> {
  try {
    await work;
    return "accepted";
  } catch (error) {
    return error instanceof NftablesError ? `${error.code} ${error.message}` : `not expected: ${error}`;
  }
}

/** What a small table as nftables mode has it does: written, read back, with transactions refused. */
async function seeTable({ nft, runner }: Kernel, family: NftFamily) {
  const before = await nft.generation();
  await nft.check(build(family));
  const checked = {
    generationMoved: (await nft.generation()) !== before,
    there: (await nft.table(family, NAME)) !== undefined,
  };
  await nft.commit(build(family));
  const committed = (await nft.generation()) > before;
  const table = await nft.table(family, NAME);
  const printed = (await runner.run(["nft", "list", "table", family, NAME])).stdout;
  await runner.run(["nft", "-f", "-"], { input: printed });
  const key = addressHex(ADDRESSES[family].service);
  const generation = await nft.generation();
  const refused = [
    await refusal(nft.commit(new NftBatch(family, NAME).addRule("nowhere", { expressions: goTo("services") }))),
    await refusal(nft.commit(new NftBatch(family, NAME).deleteElements("cluster-ips", ["00".repeat(key.length / 2)]))),
    await refusal(nft.commit(new NftBatch(family, NAME).deleteChain("endpoints-4"))),
    await refusal(nft.commit(new NftBatch(family, NAME).addRule("services", { expressions: jump("services") }))),
    await refusal(
      nft.commit(
        new NftBatch(family, NAME)
          .addElements("cluster-ips", [{ key: "00" }])
          .addElements("nowhere", [])
          .deleteSet("none"),
      ),
    ),
  ];
  const unchanged = (await nft.generation()) === generation;
  await nft.commit(new NftBatch(family, NAME).deleteTable());
  const gone = (await nft.table(family, NAME)) === undefined;
  return {
    checked,
    committed,
    table: table && plain(table),
    printed,
    refused,
    unchanged,
    gone,
  };
}

/** Without maps. */
function plain({ comment, chains, sets }: NftTable) {
  return {
    comment,
    chains: Object.fromEntries(
      [...chains].map(([name, { base, rules }]) => [
        name,
        { base, rules: rules.map(({ expressions, comment }) => ({ expressions, comment })) },
      ]),
    ),
    sets: Object.fromEntries(
      [...sets].map(([name, { userData: _, elements, ...set }]) => [
        name,
        { ...set, elements: [...elements.values()] },
      ]),
    ),
  };
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
  for (let rule = 0; rule < 20_000; rule += 1) batch.addRule(`chain-${rule}`, { expressions: goTo("nowhere") });
  return refusal(nft.commit(batch));
}

insideSuite("nf_tables by netlink, on the kernel", () => {
  let seen: Readonly<Record<"ip" | "ip6", Awaited<ReturnType<typeof seeTable>>>> &
    Readonly<Record<"timed" | "often" | "large", unknown>>;

  beforeAll(async () => {
    seen = await inside(async ({ runner }) => {
      const nft = await openNftables();
      const kernel = { nft, runner };
      const result = {
        ip: await seeTable(kernel, "ip"),
        ip6: await seeTable(kernel, "ip6"),
        timed: await seeTimes(kernel),
        often: await refusedOften(kernel),
        large: await seeLarge(kernel),
      };
      await nft.close();
      return result;
    });
  });

  test.each(["ip", "ip6"] as const)(
    "%s: a check changes nothing, a commit everything, and a refusal nothing",
    (family) => {
      expect(seen[family]).toMatchObject({
        checked: { generationMoved: false, there: false },
        committed: true,
        unchanged: true,
        gone: true,
      });
    },
  );

  test.each(["ip", "ip6"] as const)("%s: what is read back is what was written", (family) => {
    const address = family === "ip" ? "ipv4_addr" : "ipv6_addr";
    expect(seen[family].table).toMatchObject({
      comment: "rules of a test",
      chains: {
        "nat-prerouting": { base: { type: "nat", hook: "prerouting", priority: -100, policy: "accept" } },
        services: { rules: [{ comment: "from outside" }, { expressions: [{}, {}, {}, { to: "verdict" }] }] },
        "endpoints-4": { rules: [{ expressions: [{}, {}, {}, { kind: "numgen", modulus: 4 }, {}, { kind: "nat" }] }] },
      },
      sets: {
        "cluster-ips": { key: [address], comment: "Active ClusterIPs", elements: [{}] },
        "service-ips": {
          data: "verdict",
          elements: [{ value: { kind: "goto", chain: "endpoints-4" }, comment: "default/web" }],
        },
        "endpoints-4": { key: [address, "inet_proto", "inet_service", "integer"], elements: [{}, {}] },
        affinity: { flags: ["dynamic", "timeout"], timeout: 10_800_000 },
      },
    });
  });

  test.each([
    ["ip", "10.96.0.10 . tcp . 80 . 1 : 10.144.2.6 . 8080"],
    ["ip6", "fd00:10:96::10 . tcp . 80 . 1 : fd00:144:0:1::6 . 8080"],
  ] as const)("%s: nft prints it, slots as numbers, and takes what it printed", (family, element) => {
    expect(seen[family].printed).toContain(element);
    expect(seen[family].printed).toContain("typeof");
    expect(seen[family].printed).toContain("ct state new jump services");
  });

  test.each(["ip", "ip6"] as const)("%s: an error names what was refused", (family) => {
    const place = `table ${family} fairlead-test: cannot`;
    expect(seen[family].refused).toEqual([
      expect.stringContaining(`ENOENT ${place} add a rule of chain nowhere: ENOENT`),
      expect.stringContaining(`ENOENT ${place} delete elements of set cluster-ips: ENOENT`),
      expect.stringContaining(`EBUSY ${place} delete chain endpoints-4: EBUSY`),
      expect.stringMatching(/^E(LOOP|MLINK) /),
      expect.stringMatching(/^EINVAL .* cannot add elements of set cluster-ips: EINVAL/),
    ]);
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
    expect(seen.often).toMatch("ENOENT table ip often: cannot add a rule of chain chain-0: ENOENT");
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
