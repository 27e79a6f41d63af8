import {
  addressHex,
  hostHex,
  NftBatch,
  type NftFamily,
  type NftSet,
  padded,
  portHex,
  statements,
} from "@fairlead/netfilter/nft";
import { createRunner, NftablesError, openNftables } from "../../src/index.ts";

/**
 * Runs in a namespace of its own: writes a small table as nftables mode has it, reads it back, has transactions
 * refused, and prints what was seen.
 */
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

const nft = await openNftables();
const runner = createRunner();
const refusal = async (work: Promise<void>) => {
  try {
    await work;
    return "accepted";
  } catch (error) {
    return error instanceof NftablesError ? `${error.code} ${error.message}` : `not expected: ${error}`;
  }
};

async function seen(family: NftFamily) {
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
  const { service } = ADDRESSES[family];
  const key = addressHex(service);
  const found = await nft.elements(family, NAME, "cluster-ips", [key]);
  const partly = await nft.elements(family, NAME, "cluster-ips", [key, addressHex(service.replace(/10$/, "11"))]);
  const none = await nft.elements(family, NAME, "cluster-ips", [addressHex(service.replace(/10$/, "11"))]);
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
    table: table && describe(table),
    printed,
    found,
    partly,
    none,
    refused,
    unchanged,
    gone,
  };
}

type Table = NonNullable<Awaited<ReturnType<typeof nft.table>>>;

/** JSON knows no maps and no large integers. */
function describe({ comment, chains, sets }: Table) {
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
async function timed() {
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
async function large() {
  const keys = Array.from({ length: 100_000 }, (_, at) => ({ key: hostHex(at) }));
  const batch = new NftBatch("ip", "large").addTable().addSet({ name: "many", key: ["ipv4_addr"], flags: [] });
  await nft.commit(batch.addElements("many", keys));
  const table = await nft.table("ip", "large");
  return { room: nft.roomFor(1 << 20) > 0, elements: table?.sets.get("many")?.elements.size };
}

/** More answers than the socket keeps. */
async function refusedOften(): Promise<string> {
  const batch = new NftBatch("ip", "often").addTable();
  for (let rule = 0; rule < 20_000; rule += 1) batch.addRule(`chain-${rule}`, { expressions: goTo("nowhere") });
  return refusal(nft.commit(batch));
}

const result = {
  ip: await seen("ip"),
  ip6: await seen("ip6"),
  timed: await timed(),
  often: await refusedOften(),
  large: await large(),
};
await nft.close();
process.stdout.write(JSON.stringify(result));
