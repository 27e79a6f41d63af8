import { readdirSync, readFileSync } from "node:fs";
import { expressionKinds, type NftTable, readTables, ruleText, statements, tableText } from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";

const golden = new URL("../../../testkit/fixtures/golden/", import.meta.url);
const fixture = (name: string) => readFileSync(new URL(`fixtures/${name}`, import.meta.url), "utf8");
const oneLine = (text: string) => text.replace(/^#.*$/gm, "").replace(/\s+/g, " ").trim();

describe("kube-proxy's tables, as nft lists them", () => {
  test.each(readdirSync(golden).filter((name) => name.endsWith(".nft")))("%s is printed as it was read", (name) => {
    const listing = readFileSync(new URL(name, golden), "utf8");
    const tables = readTables(listing);
    expect(oneLine(tables.map(tableText).join(""))).toBe(oneLine(listing));
    expect(unknownIn(tables)).toEqual([]);
  });
});

const ruleset = readTables(fixture("ruleset.nft"));

test("what a listing of nft has is read", () => {
  const [table] = ruleset;
  expect(ruleset.map(({ family, name }) => `${family} ${name}`)).toEqual(["ip kube-proxy"]);
  expect(table?.sets.get("aff")).toEqual({
    name: "aff",
    key: ["ipv4_addr", "ipv4_addr", "inet_proto", "inet_service"],
    flags: ["dynamic", "timeout"],
    timeout: 630_000,
    size: 65_535,
    elements: new Map([
      [
        "0a0000010a6000010600000000500000",
        { key: "0a0000010a6000010600000000500000", timeout: 3_600_000, expires: 1_805_112, comment: "hi" },
      ],
    ]),
  });
  expect(table?.chains.get("f")).toEqual({
    name: "f",
    base: { type: "filter", hook: "output", priority: -110, policy: "drop" },
    rules: [],
  });
  expect(table?.chains.get("a")?.comment).toBe("hi");
});

/** As it is printed here: nft leaves protocols out of its text where a set's declaration or a field says them. */
const SAID: readonly (readonly [listed: string, printed: string])[] = [
  ["mod 65536 : ip daddr . tcp dport", "mod 65536 : ip daddr . th dport"],
  ["meta l4proto . tcp dport . numgen random mod 4", "meta l4proto . th dport . numgen random mod 4"],
  ["\ttcp dport 80", "\tmeta l4proto tcp th dport 80"],
  ["\ttcp dport {", "\tmeta l4proto tcp th dport {"],
  ...["!= syn /", "syn /", "syn accept", "== syn", "! syn"].map(
    (rest) => [`\ttcp flags ${rest}`, `\tmeta l4proto tcp tcp flags ${rest}`] as const,
  ),
];

test("the text is printed as it was read, with protocols that a field implies", () => {
  const listing = SAID.reduce((text, [from, to]) => text.replace(from, to), fixture("ruleset.nft"));
  const other = listing.indexOf("table inet");
  expect(oneLine(ruleset.map(tableText).join(""))).toBe(oneLine(listing.slice(0, other)));
});

/** nft's text of a hash stays unknown; the others are read as "named objects" and "flowtables" below show. */
const NOT_HERE = ["flow-offload", "hash", "objref"];

test("every kind of expression is read", () => {
  const kinds = new Set<string>(rulesOf(ruleset).flatMap(({ expressions }) => expressions.map(({ kind }) => kind)));
  expect(Object.keys(expressionKinds).filter((kind) => !kinds.has(kind))).toEqual(NOT_HERE);
});

test("what is not known is kept as it stands there", () => {
  expect(unknownIn(ruleset)).toEqual([
    "limit rate 5/second",
    'log prefix "x y"',
    "jhash ip saddr . ip daddr mod 2 vmap { 0 : goto a, 1 : goto a }",
    "redirect to :8080",
    "icmp type echo-request",
    "snat to 1.2.3.4",
  ]);
  // The steps behind it are known again.
  const first = rulesOf(ruleset).find(({ expressions }) => expressions[0]?.kind === "unknown")?.expressions;
  const accept = { kind: "immediate", verdict: { kind: "accept" } };
  expect(first).toEqual([{ kind: "unknown", text: "limit rate 5/second" }, accept]);
});

const inChain = (line: string, sets = "") => readTables(`table ip t {\n${sets}\n\tchain c {\n\t\t${line}\n\t}\n}\n`);

test.each([
  ["ct state ! new accept", "ct state ! new accept"],
  ['ct state new,established accept comment "a, b; { c }"', undefined],
  ["ip saddr 10.0.0.0-10.0.0.9 accept", "unknown"],
  ["ip saddr 10.0.0 accept", "unknown"],
  ["ip saddr @nowhere accept", "unknown"],
  ["ip saddr 10.0.0.1 queue", "unknown"],
  ["th dport >= 1024 accept", undefined],
  ["ip saddr { 10.0.0.0/24, 10.0.1.0/24, 255.255.255.255 } accept", undefined],
  ["ip saddr", "unknown"],
  ["masquerade to :1024-65535", "unknown"],
  ["dnat to 10.0.0.1-10.0.0.9", "unknown"],
  ["numgen random mod 2 offset 1 vmap { 1 : accept }", "unknown"],
  ["numgen inc mod 2 vmap { 1 : accept }", "unknown"],
  ["meta mark set meta mark & 0x5", "unknown"],
  ["vmap { 1 : accept }", "unknown"],
])("%s", (line, expected) => {
  const tables = inChain(line);
  if (expected === "unknown") expect(unknownIn(tables)).not.toEqual([]);
  else expect(ruleTexts(tables)).toEqual([line.replace("new,established", "established,new")]);
});

const CLIENTS = `
	map clients {
		type mark . ipv4_addr : mark . mark
		flags dynamic,timeout
	}`;

test.each([
  "update @clients { meta mark . ip saddr timeout 10m : meta mark . meta mark } accept",
  "add @clients { meta mark . ip saddr : meta mark . meta mark }",
  "delete @clients { meta mark . ip saddr : meta mark . meta mark }",
])("a map that packets change: %s", (line) => {
  const tables = inChain(line, CLIENTS);
  expect(unknownIn(tables)).toEqual([]);
  expect(ruleTexts(tables)).toEqual([line]);
});

/** Between what is known, as nft 1.0.6 and 1.1 list it. */
test.each([
  "limit rate 5/second",
  "limit rate over 5/second burst 7 packets",
  "limit rate over 10 mbytes/second burst 1 mbytes",
  "quota over 25 mbytes used 3 bytes",
  "ct count over 4",
  'log prefix "tcp dport 80 drop" level warn',
  "log flags tcp sequence,options flags ip options flags skuid",
  "log flags all group 2 snaplen 4 queue-threshold 3",
  "meta nftrace set 1",
  "meta priority set 0x00010002",
])("%s ends where it ends", (statement) => {
  const tables = inChain(`ip saddr 10.0.0.1 ${statement} th dport 80 drop`);
  expect(unknownIn(tables)).toEqual([statement]);
  expect(ruleTexts(tables)).toEqual([`ip saddr 10.0.0.1 ${statement} th dport 80 drop`]);
});

test.each([
  ["icmp type echo-request", "drop"],
  ["tcp option maxseg exists", "counter packets 0 bytes 0 drop"],
  ["meta mark set ip saddr map { 10.0.0.1 : 0x00000005, 10.0.0.2 : 0x00000006 }", "accept"],
  ["ct original zone 1 ip protocol tcp", "jump c"],
  ["fib saddr . iif oif missing", 'drop comment "drop"'],
  ['dup to 10.0.0.1 device "lo"', "return"],
  ["reject with icmp host-unreachable", ""],
])("after %s the verdict is known", (statement, rest) => {
  const tables = inChain(`${statement} ${rest}`);
  expect(unknownIn(tables)).toEqual([statement]);
  expect(ruleTexts(tables)).toEqual([`${statement} ${rest}`.trim()]);
});

/** A table with each kind of named objects, its rules in a chain `c`; `nft list` printed it. */
describe("named objects", () => {
  const RULES = [
    'tcp dport 80 counter name "c1" accept',
    'quota name "q1" drop',
    'limit name "l1" accept',
    'tcp dport 21 ct helper set "h1"',
    'ct timeout set "t1"',
    'ct expectation set "e1"',
    'synproxy name "y1"',
    "counter name tcp dport map @m1",
    "quota name ip saddr map @m2 drop",
    'counter name tcp dport map { 443 : "c1" } accept',
    "meta mark set 0x00004000",
    "meta mark set 0x00000001 counter packets 0 bytes 0",
  ];

  test("are read", () => {
    const tables = readTables(fixture("objects.nft"));
    expect(unknownIn(tables)).toEqual([]);
    const asListed = (rule: string) => rule.replace("meta l4proto tcp ", "").replace("th dport", "tcp dport");
    expect(ruleTexts(tables).map(asListed)).toEqual(RULES);
    const [m1, m2] = ["m1", "m2"].map((name) => tables[0]?.sets.get(name));
    expect(m1).toMatchObject({ objects: "counter", elements: new Map([["0050", { key: "0050", object: "c1" }]]) });
    expect(m2).toMatchObject({ objects: "quota" });
  });

  test('secmark is read, which nft lists as "meta secmark set"', () => {
    const tables = inChain('meta secmark set "s1" accept');
    expect(unknownIn(tables)).toEqual([]);
    expect(ruleTexts(tables)).toEqual(['meta secmark set "s1" accept']);
  });
});

/** As nft(8) has it: Calico's, firewalld's and OpenWrt's tables begin so. */
describe("flowtables", () => {
  test.each([
    ["nft 1.0", inChain("flow add @ft accept", "\tflowtable ft {\n\t\thook ingress priority filter\n\t}")],
    ["nft 0.9.1", inChain("flow offload @ft accept")],
  ])("the statement is read, of %s", (_, tables) => {
    expect(unknownIn(tables)).toEqual([]);
    expect(ruleTexts(tables)).toEqual(["flow add @ft accept"]);
  });

  test.each([
    [
      "words",
      inChain("accept", "\tflowtable ft {\n\t\thook ingress priority filter - 5\n\t\tdevices = { eth0, eth1 }\n\t}"),
    ],
    [
      "quotation marks",
      inChain("accept", '\tflowtable ft {\n\t\thook ingress priority -5\n\t\tdevices = { "eth0",\n\t\t"eth1" }\n\t}'),
    ],
  ])("devices are read, in %s", (_, [table]) => {
    expect([...(table?.flowtables?.values() ?? [])]).toEqual([{ name: "ft", priority: -5, devices: ["eth0", "eth1"] }]);
  });

  test("a flowtable is printed as nft prints it", () => {
    const text = '\tflowtable ft {\n\t\thook ingress priority filter\n\t\tdevices = { eth0, "1a" }\n\t\tcounter\n\t}';
    const [table] = inChain("accept", text);
    expect(table && tableText(table)).toContain(text);
  });

  test("a statement of another form is not known", () => {
    expect(unknownIn(inChain("flow del @ft accept"))).not.toEqual([]);
  });
});

/** What `replyVia` writes. */
test("marks of connections and the direction of packets are read", () => {
  const tables = inChain(
    [
      'iifname "eth1" ct state new ct status dnat ct mark set ct mark & 0xffffdfff | 0x00001000',
      "ct direction reply ct mark & 0x00003000 == 0x00001000 meta mark set meta mark & 0xffffdfff | 0x00001000",
    ].join("\n\t\t"),
  );
  const { answer, connectionMarkIs, interfaceIs, newConnection, translatedConnection } = statements;
  const { setConnectionMark, setMarkWithin } = statements;
  expect(rulesOf(tables).map(({ expressions }) => expressions)).toEqual([
    [
      ...interfaceIs("iifname", "eth1"),
      ...newConnection,
      ...translatedConnection,
      // Of the mask 0x3000 the listing has those bits that are cleared.
      ...setConnectionMark(0x1000, 0x3000),
    ],
    [...answer, ...connectionMarkIs(0x1000, 0x3000), ...setMarkWithin(0x1000, 0x3000)],
  ]);
});

test("a set of types that are not known is left out, and its rules say so", () => {
  const tables = inChain(
    "ether saddr @macs accept",
    "\tset macs {\n\t\ttype ether_addr\n\t}\n\tset ips {\n\t\ttype ipv4_addr\n\t}",
  );
  expect([...(tables[0]?.sets.keys() ?? [])]).toEqual(["ips"]);
  expect(unknownIn(tables)).toEqual(["ether saddr @macs"]);
});

test("handles are read where they are listed", () => {
  const [table] = readTables(
    'table ip t { # handle 1\n\tchain c { # handle 2\n\t\taccept comment "x" # handle 7\n\t}\n}',
  );
  expect(rulesOf(table === undefined ? [] : [table])).toEqual([
    { expressions: [{ kind: "immediate", verdict: { kind: "accept" } }], comment: "x", handle: 7n },
  ]);
});

test("a listing that is cut off within a table is refused, and one that is none has no tables", () => {
  const listing = fixture("ruleset.nft");
  const cut = Array.from({ length: listing.length / 37 }, (_, at) => listing.slice(0, at * 37));
  const refusals = cut.flatMap((text) => {
    try {
      readTables(text);
      return [];
    } catch (error) {
      return [String(error)];
    }
  });
  expect(refusals.length).toBeGreaterThan(cut.length / 2);
  expect(new Set(refusals)).toContain("SyntaxError: the text ends within table ip kube-proxy");
  expect(refusals.filter((text) => !text.startsWith("SyntaxError: the text ends within table "))).toEqual([]);
  expect(readTables("Error: No such file or directory")).toEqual([]);
});

function rulesOf(tables: readonly NftTable[]) {
  return tables.flatMap(({ chains }) => Array.from(chains.values(), ({ rules }) => rules).flat());
}

function ruleTexts(tables: readonly NftTable[]) {
  return tables.flatMap((table) => rulesOf([table]).map((rule) => ruleText(rule, table)));
}

function unknownIn(tables: readonly NftTable[]): readonly string[] {
  return rulesOf(tables).flatMap(({ expressions }) =>
    expressions.flatMap((one) => (one.kind === "unknown" ? one.text : [])),
  );
}
