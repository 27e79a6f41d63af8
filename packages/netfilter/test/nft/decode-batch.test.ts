import {
  decodeBatch,
  hostHex,
  NftBatch,
  type NftChange,
  type SetElement,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";

const SET = {
  name: "s",
  key: ["ipv4_addr"],
  data: "verdict",
  flags: ["dynamic", "timeout"],
  timeout: 3000,
  size: 9,
} as const;
const ELEMENTS: readonly SetElement[] = [
  { key: "0a000001", value: { kind: "goto", chain: "a" }, comment: "one", timeout: 2000, expires: 1500 },
  { key: "0a000002", value: { kind: "drop" } },
];
const RULE = { expressions: [{ kind: "immediate", verdict: { kind: "drop" } }], comment: "no" } as const;
const BASE = { type: "nat", hook: "output", priority: -100, policy: "accept" } as const;

const FLOWTABLE = { name: "f", priority: 0, devices: ["cali-a", "eth0"], counter: true } as const;

const changes: readonly NftChange[] = [
  { kind: "add-table", comment: "of a test" },
  { kind: "add-chain", chain: { name: "a" } },
  { kind: "add-chain", chain: { name: "b", base: BASE, comment: "base" } },
  { kind: "add-set", set: SET },
  { kind: "add-elements", set: "s", elements: ELEMENTS },
  { kind: "add-rule", chain: "a", rule: RULE },
  { kind: "delete-rule", chain: "a", handle: 7n },
  { kind: "flush-chain", name: "a" },
  { kind: "delete-elements", set: "s", keys: ["0a000001"] },
  { kind: "flush-set", name: "s" },
  { kind: "delete-set", name: "s" },
  { kind: "add-flowtable", flowtable: FLOWTABLE },
  { kind: "add-flowtable", flowtable: { name: "g", priority: -1, devices: [] } },
  { kind: "delete-devices", flowtable: "f", devices: ["cali-a"] },
  { kind: "delete-flowtable", name: "f" },
  { kind: "delete-chain", name: "a" },
  { kind: "delete-table" },
];

function written(): NftBatch {
  return new NftBatch("ip6", "t")
    .addTable("of a test")
    .addChain({ name: "a" })
    .addChain({ name: "b", base: BASE, comment: "base" })
    .addSet(SET)
    .addElements("s", ELEMENTS)
    .addRule("a", RULE)
    .deleteRule("a", 7n)
    .flushChain("a")
    .deleteElements("s", ["0a000001"])
    .flushSet("s")
    .deleteSet("s")
    .addFlowtable(FLOWTABLE)
    .addFlowtable({ name: "g", priority: -1, devices: [] })
    .deleteDevices("f", ["cali-a"])
    .deleteFlowtable("f")
    .deleteChain("a")
    .deleteTable();
}

/** `nft` takes comments of as many bytes; kube-proxy's are cut there. */
test.each(["table", "chain", "rule", "set", "element"] as const)("a comment of 128 bytes of a %s is whole", (what) => {
  const comment = "x".repeat(128);
  const batch = new NftBatch("ip", "t");
  if (what === "table") batch.addTable(comment);
  else if (what === "chain") batch.addChain({ name: "c", comment });
  else if (what === "rule") batch.addRule("c", { ...RULE, comment });
  else if (what === "set") batch.addSet({ ...SET, comment });
  else batch.addElements("s", [{ key: "0a000001", value: { kind: "drop" }, comment }]);
  expect(JSON.stringify(decodeBatch(batch.finish()).requests)).toContain(`"comment":"${comment}"`);
});

test("a transaction is read as it was written", () => {
  const { requests, commits } = decodeBatch(written().finish());
  expect(requests).toEqual(changes.map((change, at) => ({ sequence: at + 1, family: "ip6", table: "t", change })));
  expect(commits).toBe(true);
  expect(decodeBatch(written().finishAsCheck())).toEqual({ requests, commits: false });
});

test("a batch knows how long it will be", () => {
  const batch = written();
  const { length } = batch;
  expect([batch.finish().length, batch.length]).toEqual([length, length]);
});

test("many elements are in several messages", () => {
  const many = Array.from({ length: 10_000 }, (_, at) => ({ key: hostHex(at) }));
  const { requests } = decodeBatch(new NftBatch("ip", "t").addElements("s", many).finish());
  expect(requests.length).toBeGreaterThan(1);
  const read = requests.flatMap(({ change }) => (change.kind === "add-elements" ? change.elements : []));
  expect(read).toEqual(many);
});

test("what is no transaction is refused", () => {
  const bytes = () => Buffer.from(new NftBatch("ip", "t").addChain({ name: "a" }).addChain({ name: "b" }).finish());
  const refused = (change: (bytes: Buffer) => void) => {
    const changed = bytes();
    change(changed);
    return expect(() => decodeBatch(changed));
  };
  const first = 20;
  refused((all) => all.writeUInt16BE(1, 18)).toThrow("begins with");
  refused((all) => all.writeUInt16LE(0x405, first + 6)).toThrow("message 1 of 2: the last one");
  refused((all) => all.writeUInt16LE(1, first + 6)).toThrow("NLM_F_CREATE");
  refused((all) => all.writeUInt16LE((10 << 8) | 99, first + 4)).toThrow("its type");
  refused((all) => all.writeUInt32LE(9_999, first)).toThrow("a message of 9999 bytes");
  expect(() => decodeBatch(bytes().subarray(0, 30))).toThrow(UnreadableNft);
});
