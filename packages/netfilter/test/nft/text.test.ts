import {
  addressHex,
  hostHex,
  type NftRule,
  type NftSet,
  padded,
  portHex,
  ruleText,
  statements,
  tableText,
} from "@fairlead/netfilter/nft";
import { describe, expect, test } from "vitest";
import { AttributeWriter } from "../../src/netlink/attributes.ts";
import { elementKey, intervalElements } from "../../src/nft/index.ts";

const { addressIn, dnatTo, goTo, interfaceIs, jump, load, loadKey } = statements;

/** What kube-proxy's recordings have none of: those are read and printed as they are. */
const rules: readonly (readonly [text: string, rule: NftRule["expressions"]])[] = [
  [
    "ip saddr 10.201.0.10 accept",
    [...addressIn("ip", "saddr", "10.201.0.10"), ...statements.verdict({ kind: "accept" })],
  ],
  ["ct original ip daddr @nodeport-ips", statements.originallyTo("ip", "nodeport-ips")],
  ["ct original ip saddr @excluded-clients", statements.originallyFrom("ip", "excluded-clients")],
  [
    "ct original ip6 daddr . meta l4proto . ct original proto-dst @service-ips flow add @ft",
    [...statements.originalService("ip6", "service-ips", true), { kind: "flow-offload", flowtable: "ft" }],
  ],
  [
    "ct state established ct status dnat meta l4proto . ct original proto-dst @service-nodeports",
    [
      ...statements.establishedConnection,
      ...statements.translatedConnection,
      ...statements.originalService("ip", "service-nodeports", false),
    ],
  ],
  ['iifname != "cbr0" goto service-x', [...interfaceIs("iifname", "cbr0", "!="), ...goTo("service-x")]],
  [
    "meta l4proto sctp dnat to [fd00:144::5]:8080",
    [...statements.protocolIs("sctp"), ...dnatTo("ip6", "fd00:144::5", 8080)],
  ],
  [
    "update @affinity-x { ip saddr }",
    [load("ip", "saddr", 0), { kind: "dynset", set: "affinity-x", operation: "update", from: 0 }],
  ],
  [
    "dnat ip to ip daddr . meta l4proto . th dport . numgen random mod 4 map @endpoints-4",
    [
      ...loadKey("ip", ["daddr", "l4proto", "dport"]).expressions,
      { kind: "numgen", modulus: 4, to: 3 },
      { kind: "lookup", set: "endpoints-4", from: 0, to: 0 },
      { kind: "nat", family: "ip", address: 0, port: 1 },
    ],
  ],
];

const endpoints: NftSet = {
  name: "endpoints-4",
  key: ["ipv4_addr", "inet_proto", "inet_service", "integer"],
  data: ["ipv4_addr", "inet_service"],
  flags: [],
  comment: "endpoints of services",
  elements: new Map(
    [0, 1].map((slot) => {
      const key = padded(addressHex("10.96.0.10")) + padded("06") + padded(portHex(80)) + hostHex(slot);
      return [key, { key, value: padded(addressHex(`10.144.1.${slot}`)) + padded(portHex(8080)) }];
    }),
  ),
};

const sources: NftSet = {
  name: "__set0",
  key: ["ipv4_addr"],
  flags: ["anonymous", "constant", "interval"],
  elements: new Map(
    (
      [
        ["10.201.0.0", undefined],
        ["10.201.1.0", true],
        ["203.0.113.10", undefined],
        ["203.0.113.11", true],
        ["198.51.100.3", undefined],
        ["198.51.100.9", true],
      ] as const
    ).map(([address, end]) => {
      const key = addressHex(address);
      return [`${key}${end ?? ""}`, { key, ...(end && { intervalEnd: end }) }];
    }),
  ),
};

const sets = new Map([endpoints, sources].map((set) => [set.name, set]));

describe("rules as nft prints them", () => {
  test.each(rules)("%s", (text, expressions) => {
    const family = /ip6|fd00/.test(text) ? "ip6" : "ip";
    expect(ruleText({ expressions }, { family, sets })).toBe(text);
  });

  /** `@nh,64,32` of IPv4 is where IPv6 has the source. */
  test.each([
    ["ip", "@nh,64,32 0x40110000 drop"],
    ["ip6", "ip6 saddr 4011::/32 drop"],
  ] as const)("a place in the header is a field of the table's family: %s", (family, text) => {
    const value = "40110000";
    const expressions: NftRule["expressions"] = [
      { kind: "payload", base: "network", offset: 8, length: 4, to: 0 },
      { kind: "cmp", operator: "==", from: 0, value },
      ...statements.verdict({ kind: "drop" }),
    ];
    expect(ruleText({ expressions }, { family, sets })).toBe(text);
  });

  test("an anonymous set stands where it is used, its intervals as prefixes and ranges", () => {
    const expressions: NftRule["expressions"] = [
      load("ip", "saddr", 0),
      { kind: "lookup", set: "__set0", from: 0, inverted: true },
      ...statements.verdict({ kind: "drop" }),
    ];
    expect(ruleText({ expressions, comment: "not allowed" }, { family: "ip", sets })).toBe(
      'ip saddr != { 10.201.0.0/24, 198.51.100.3-198.51.100.8, 203.0.113.10 } drop comment "not allowed"',
    );
  });
});

test("a table is printed as nft lists it", () => {
  const chain = {
    name: "nat-prerouting",
    base: { type: "nat", hook: "prerouting", priority: -100, policy: "accept" },
  } as const;
  const table = {
    family: "ip",
    name: "kube-proxy",
    comment: "rules for kube-proxy",
    sets,
    chains: new Map([["nat-prerouting", { ...chain, rules: [{ expressions: jump("services") }] }]]),
  } as const;
  expect(tableText(table)).toBe(`table ip kube-proxy {
	comment "rules for kube-proxy"
	map endpoints-4 {
		typeof ip daddr . meta l4proto . tcp dport . numgen random mod 65536 : ip daddr . th dport
		comment "endpoints of services"
		elements = { 10.96.0.10 . tcp . 80 . 0 : 10.144.1.0 . 8080,
			     10.96.0.10 . tcp . 80 . 1 : 10.144.1.1 . 8080 }
	}

	chain nat-prerouting {
		type nat hook prerouting priority dstnat; policy accept;
		jump services
	}
}
`);
});

test.each([
  [-110, "prerouting", "dstnat - 10"],
  [-110, "output", "-110"],
  [0, "input", "filter"],
  [100, "postrouting", "srcnat"],
  [-300, "output", "raw"],
] as const)("priority %i at %s is %s", (priority, hook, text) => {
  const chain = { name: "c", base: { type: "filter", hook, priority, policy: "accept" }, rules: [] } as const;
  const table = { family: "ip", name: "t", sets: new Map(), chains: new Map([["c", chain]]) } as const;
  expect(tableText(table)).toContain(`priority ${text};`);
});

test.each<[what: string, cidrs: readonly string[], keys: readonly string[]]>([
  ["none", [], []],
  ["one", ["10.0.0.0/24"], ["0a000000", "0a000100 end"]],
  ["apart", ["10.0.0.0/24", "10.0.2.0/32"], ["0a000000", "0a000100 end", "0a000200", "0a000201 end"]],
  ["one after the other", ["10.0.1.0/24", "10.0.2.0/23"], ["0a000100", "0a000400 end"]],
  ["up to the highest address", ["255.0.0.0/8"], ["ff000000"]],
  ["all", ["0.0.0.0/1", "128.0.0.0/1"], ["00000000"]],
  ["IPv6", ["fd00::/64"], ["fd000000000000000000000000000000", "fd000000000000010000000000000000 end"]],
])("%s", (_what, cidrs, keys) => {
  expect(intervalElements(cidrs).map(elementKey)).toEqual(keys);
});

test("attributes are padded with zeros, also where the buffer had to grow", () => {
  const writer = new AttributeWriter(8);
  writer.nest(1, (inner) => inner.hex(2, "abcd").u8(3, 7)).text(4, "x");
  expect(writer.bytes().toString("hex")).toBe("1400018006000200abcd00000500030007000000060004007800".padEnd(56, "0"));
});

test("what is longer than an attribute can be is refused", () => {
  expect(() => new AttributeWriter().raw(1, new Uint8Array(65_532))).toThrow("an attribute of 65536 bytes; 65535");
  expect(new AttributeWriter().raw(1, new Uint8Array(65_531)).length).toBe(65_536);
  const half = new Uint8Array(40_000);
  expect(() => new AttributeWriter().nest(1, (inner) => inner.raw(2, half).raw(2, half))).toThrow(RangeError);
});
