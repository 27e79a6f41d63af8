import { Attributes, AttributeWriter } from "@fairlead/netfilter/netlink";
import {
  decodeBatch,
  type Expression,
  expressionKinds,
  hostHex,
  kindOf,
  NftBatch,
  type NftChange,
  type NftFamily,
  type SetElement,
  UnreadableNft,
} from "@fairlead/netfilter/nft";
import fc from "fast-check";
import { expect, test } from "vitest";

const register = fc.integer({ min: 0, max: 15 });
const hex = (bytes: number) =>
  fc.uint8Array({ minLength: bytes, maxLength: bytes }).map((all) => Buffer.from(all).toString("hex"));
const word = hex(4);
const name = fc.stringMatching(/^[a-z][a-z0-9/_.-]{0,40}$/);
const number = fc.integer({ min: 1, max: 0xffff_ffff });
const constant = <const T>(value: T) => fc.constant(value);

/** What a listing has and has no type here is only read. */
type Written = Exclude<Expression["kind"], "unknown">;

/** Arbitrary expressions of each kind; a kind that is missing here does not compile. */
const arbitraries: {
  readonly [Kind in Written]: fc.Arbitrary<Extract<Expression, { readonly kind: Kind }>>;
} = {
  bitwise: fc.record({ kind: constant("bitwise"), from: register, to: register, mask: word, xor: word }),
  cmp: fc.record({
    kind: constant("cmp"),
    operator: fc.constantFrom("==", "!=", "<", "<=", ">", ">="),
    from: register,
    value: fc.oneof(hex(1), hex(2), word, hex(16)),
  }),
  counter: constant({ kind: "counter" }),
  ct: fc.oneof(
    fc.record({ kind: constant("ct"), key: fc.constantFrom("state", "status"), to: register }),
    fc.record({
      kind: constant("ct"),
      key: fc.constantFrom("ip saddr", "ip daddr", "ip6 saddr", "ip6 daddr", "proto-src", "proto-dst"),
      direction: fc.constantFrom("original", "reply"),
      to: register,
    }),
  ),
  dynset: fc.record(
    {
      kind: constant("dynset"),
      set: name,
      operation: fc.constantFrom("add", "update", "delete"),
      from: register,
      value: register,
      timeout: number,
    },
    { requiredKeys: ["kind", "set", "operation", "from"] },
  ),
  fib: fc.record({ kind: constant("fib"), of: fc.constantFrom("saddr", "daddr"), to: register }),
  "flow-offload": fc.record({ kind: constant("flow-offload"), flowtable: name }),
  hash: fc.record({
    kind: constant("hash"),
    from: register,
    length: number,
    modulus: number,
    seed: number,
    to: register,
  }),
  immediate: fc.oneof(
    fc.record({ kind: constant("immediate"), to: register, value: word }),
    fc.record({
      kind: constant("immediate"),
      verdict: fc.oneof(
        fc.record({ kind: fc.constantFrom("accept", "drop", "return", "continue") }),
        fc.record({ kind: fc.constantFrom("jump", "goto"), chain: name }),
      ),
    }),
  ),
  lookup: fc.record(
    {
      kind: constant("lookup"),
      set: name,
      from: register,
      to: fc.oneof(register, constant("verdict")),
      inverted: constant(true),
    },
    { requiredKeys: ["kind", "set", "from"] },
  ),
  masq: fc.record({ kind: constant("masq"), fullyRandom: fc.boolean() }),
  meta: fc.oneof(
    fc.record({ kind: constant("meta"), key: fc.constantFrom("mark", "l4proto", "iifname", "oifname"), to: register }),
    fc.record({ kind: constant("meta"), key: constant("mark"), from: register }),
  ),
  nat: fc.record(
    { kind: constant("nat"), family: fc.constantFrom("ip", "ip6"), address: register, port: register },
    { requiredKeys: ["kind", "family", "address"] },
  ),
  numgen: fc.record({ kind: constant("numgen"), modulus: number, to: register }),
  objref: fc.oneof(
    fc.record({
      kind: constant("objref"),
      object: fc.constantFrom("counter", "quota", "limit", "synproxy", "secmark", "ct helper", "ct timeout"),
      name,
    }),
    fc.record({ kind: constant("objref"), map: name, from: register }),
  ),
  payload: fc.record({
    kind: constant("payload"),
    base: fc.constantFrom("network", "transport"),
    offset: fc.integer({ min: 0, max: 40 }),
    length: fc.integer({ min: 1, max: 16 }),
    to: register,
  }),
  reject: fc.oneof(
    constant({ kind: "reject", with: "port-unreachable", code: 3 }),
    constant({ kind: "reject", with: "tcp-reset", code: 0 }),
  ),
};

function throughNetlink(expression: Expression, family: NftFamily): Expression | undefined {
  const writer = new AttributeWriter(16);
  kindOf(expression).encode(expression, writer);
  return kindOf(expression).decode(new Attributes(writer.bytes()), family);
}

const written = (Object.keys(expressionKinds) as Expression["kind"][]).filter((kind) => kind !== "unknown");

test.each(written)("%s is read back as it was written", (kind) => {
  fc.assert(
    fc.property(arbitraries[kind] as fc.Arbitrary<Expression>, (expression) => {
      expect(throughNetlink(expression, "ip")).toEqual(expression);
    }),
  );
});

test("what has no type here can't be written", () => {
  expect(() => throughNetlink({ kind: "unknown", text: "queue" }, "ip")).toThrow('"queue" is not known here');
});

test("what is not known in a kind is refused, not left out", () => {
  const decode = (kind: Expression["kind"], write: (writer: AttributeWriter) => void, family: NftFamily = "ip") => {
    const writer = new AttributeWriter();
    write(writer);
    return expressionKinds[kind].decode(new Attributes(writer.bytes()), family);
  };
  expect(decode("numgen", (to) => to.u32(1, 1).u32(2, 4).u32(3, 0))).toBeUndefined();
  expect(decode("nat", (to) => to.u32(1, 0).u32(2, 2).u32(3, 1))).toBeUndefined();
  expect(decode("meta", (to) => to.u32(1, 1).u32(2, 99))).toBeUndefined();
  expect(decode("payload", (to) => to.u32(1, 1).u32(2, 0))).toBeUndefined();
  expect(decode("bitwise", (to) => to.u32(1, 1).u32(2, 1).u32(6, 1))).toBeUndefined();
  expect(decode("reject", (to) => to.u32(1, 0).u8(2, 3), "ip6")).toBeUndefined();
  expect(decode("fib", (to) => to.u32(1, 1).u32(2, 1).u32(3, 1))).toBeUndefined();
  expect(decode("objref", (to) => to.u32(1, 6).text(2, "tunnel"))).toBeUndefined();
  expect(decode("masq", (to) => to.u32(1, 4))).toBeUndefined();
});

test("bytes that are cut short are not an attribute", () => {
  const writer = new AttributeWriter().u32(1, 7);
  expect(new Attributes(writer.bytes().subarray(0, 6)).u32(1)).toBeUndefined();
  expect(new Attributes(Buffer.from([0, 0, 1, 0])).u32(1)).toBeUndefined();
  expect(new Attributes(new AttributeWriter().u8(1, 7).bytes()).u32(1)).toBeUndefined();
});

test("an attribute that is too long to be one is refused", () => {
  expect(() => new AttributeWriter().nest(1, (inner) => inner.raw(1, new Uint8Array(70_000)))).toThrow(RangeError);
});

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

function writtenBatch(): NftBatch {
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
  const { requests, commits } = decodeBatch(writtenBatch().finish());
  expect(requests).toEqual(changes.map((change, at) => ({ sequence: at + 1, family: "ip6", table: "t", change })));
  expect(commits).toBe(true);
  expect(decodeBatch(writtenBatch().finishAsCheck())).toEqual({ requests, commits: false });
});

test("a batch knows how long it will be", () => {
  const batch = writtenBatch();
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
