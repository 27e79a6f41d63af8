import {
  addressHex,
  type BaseChain,
  type Hex,
  NftBatch,
  type NftFamily,
  type NftSet,
  padded,
  portHex,
  statements,
  type Verdict,
} from "@fairlead/netfilter/nft";

const { goTo, jump, lookUp, MASQUERADE: masquerade, rejectPacket, verdict } = statements;

/** A transaction under test, with what differs between the families. */
export class Draft extends NftBatch {
  /** The n-th address. */
  address(n: number): Hex {
    return addressHex(this.family === "ip" ? `10.96.0.${n}` : `fd00:10:96::${n}`);
  }

  get addressType(): "ipv4_addr" | "ipv6_addr" {
    return this.family === "ip" ? "ipv4_addr" : "ipv6_addr";
  }

  /** A key of `services`: the n-th address, TCP, port 80. */
  service(n: number): Hex {
    return padded(this.address(n)) + padded("06") + padded(portHex(80));
  }

  /** A set of addresses. */
  addresses(name: string, facts: Partial<NftSet> = {}): this {
    return this.addSet({ name, key: [this.addressType], flags: [], ...facts });
  }

  /** A map of addresses to addresses. */
  data(name: string): this {
    return this.addresses(name, { data: [this.addressType] });
  }

  /** A map of services to verdicts. */
  verdicts(name: string): this {
    return this.addSet({ name, key: [this.addressType, "inet_proto", "inet_service"], data: "verdict", flags: [] });
  }

  /** An element of such a map. */
  leads(set: string, n: number, to: Verdict): this {
    return this.addElements(set, [{ key: this.service(n), value: to }]);
  }

  chains(...names: readonly string[]): this {
    for (const name of names) this.addChain({ name });
    return this;
  }

  base(name: string, hook: BaseChain["hook"] = "prerouting", type: BaseChain["type"] = "nat"): this {
    return this.addChain({ name, base: { type, hook, priority: type === "nat" ? -100 : 0, policy: "accept" } });
  }

  jumps(from: string, to: string): this {
    return this.addRule(from, { expressions: jump(to) });
  }

  /** Packets put their source into a set. */
  remembers(chain: string, set: string, timeout?: number): this {
    const source = statements.load(this.family, "saddr", 0);
    const update = { kind: "dynset", set, operation: "update", from: 0, ...(timeout && { timeout }) } as const;
    return this.addRule(chain, { expressions: [source, update] });
  }

  looksUp(chain: string, set: string): this {
    return this.addRule(chain, {
      expressions: lookUp(this.family, ["daddr", "l4proto", "dport"], set, "verdict"),
    });
  }
}

export interface Case {
  readonly name: string;
  /** Committed first, in a table that is there; must be taken. */
  readonly given?: (to: Draft) => void;
  readonly when: (to: Draft) => void;
  /** Absent: it is taken. `CODE: what`, the message that is blamed, as `NftablesError` says it. */
  readonly refused?: string;
  /** Of the table afterwards: chains with the number of their rules, sets with the number of their elements. */
  readonly after?: readonly string[];
}

const HOOKED: readonly string[] = ["chain nat 0"];

/** What a transaction does: run on the real kernel and on the fake, in both families. */
export const cases: readonly Case[] = [
  {
    name: "chains, sets and elements are made and filled",
    when: (to) => {
      to.base("nat").chains("a").jumps("nat", "a").addresses("s").verdicts("v").looksUp("a", "v");
      to.addElements("s", [{ key: to.address(1) }, { key: to.address(2), comment: "two" }]);
      to.leads("v", 1, { kind: "drop" });
    },
    after: ["chain nat 1", "chain a 1", "set s 2", "set v 1"],
  },
  {
    name: "what is there already is no error",
    given: (to) =>
      to
        .base("nat")
        .chains("a")
        .addresses("s")
        .addElements("s", [{ key: to.address(1) }]),
    when: (to) =>
      to
        .addTable()
        .base("nat")
        .chains("a")
        .addresses("s")
        .addElements("s", [{ key: to.address(1) }]),
    after: ["chain nat 0", "chain a 0", "set s 1"],
  },
  {
    name: "a chain cannot become a base chain",
    given: (to) => to.chains("a"),
    when: (to) => to.base("a"),
    refused: "ENOTSUP: cannot add chain a",
    after: ["chain a 0"],
  },
  {
    name: "a base chain keeps its hook",
    given: (to) => to.base("nat"),
    when: (to) => to.base("nat", "output"),
    refused: "ENOTSUP: cannot add chain nat",
    after: HOOKED,
  },
  {
    name: "a base chain may be named without its hook",
    given: (to) => to.base("nat"),
    when: (to) => to.chains("nat"),
    after: HOOKED,
  },
  {
    name: "a name of 255 bytes is not too long",
    when: (to) => to.chains("x".repeat(255)),
    after: [`chain ${"x".repeat(255)} 0`],
  },
  {
    name: "one of 256 bytes is",
    when: (to) => to.chains("x".repeat(256)),
    refused: `ERANGE: cannot add chain ${"x".repeat(256)}`,
  },
  {
    name: "a set's too",
    when: (to) => to.addresses("x".repeat(256)),
    refused: `ERANGE: cannot add set ${"x".repeat(256)}`,
  },
  {
    name: "all or nothing",
    given: (to) =>
      to
        .chains("a")
        .jumps("a", "a")
        .flushChain("a")
        .addresses("s")
        .addElements("s", [{ key: to.address(1) }]),
    when: (to) =>
      to
        .deleteElements("s", [to.address(1)])
        .chains("b")
        .addRule("a", { expressions: goTo("b") })
        .deleteSet("none"),
    refused: "ENOENT: cannot delete set none",
    after: ["chain a 0", "set s 1"],
  },
  {
    name: "the first message that is refused is blamed",
    when: (to) => to.jumps("nowhere", "a").deleteSet("none"),
    refused: "ENOENT: cannot add a rule of chain nowhere",
  },
  {
    name: "a jump to nowhere",
    when: (to) => to.chains("a").jumps("a", "b"),
    refused: "ENOENT: cannot add a rule of chain a",
  },
  {
    name: "a jump to a base chain",
    when: (to) => to.base("nat").chains("a").jumps("a", "nat"),
    refused: "ENOTSUP: cannot add a rule of chain a",
  },
  {
    name: "a lookup in a set that is not there",
    when: (to) => to.chains("a").looksUp("a", "v"),
    refused: "ENOENT: cannot add a rule of chain a",
  },
  {
    name: "a set gives no verdict",
    when: (to) =>
      to
        .chains("a")
        .addresses("s")
        .addRule("a", { expressions: lookUp(to.family, ["daddr"], "s", "verdict") }),
    refused: "EINVAL: cannot add a rule of chain a",
  },
  {
    name: "a map of data gives no verdict",
    when: (to) =>
      to
        .chains("a")
        .data("d")
        .addRule("a", { expressions: lookUp(to.family, ["daddr"], "d", "verdict") }),
    refused: "EINVAL: cannot add a rule of chain a",
  },
  {
    name: "a map of verdicts gives no data",
    when: (to) =>
      to
        .chains("a")
        .verdicts("v")
        .addRule("a", {
          expressions: [
            ...lookUp(to.family, ["daddr", "l4proto", "dport"], "v").slice(0, -1),
            { kind: "lookup", set: "v", from: 0, to: 0 },
          ],
        }),
    refused: "EINVAL: cannot add a rule of chain a",
  },
  {
    name: "a chain that a rule jumps to stays",
    given: (to) => to.chains("a", "b").jumps("a", "b"),
    when: (to) => to.deleteChain("b"),
    refused: "EBUSY: cannot delete chain b",
    after: ["chain a 1", "chain b 0"],
  },
  {
    name: "a chain that an element leads to stays",
    given: (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.deleteChain("a"),
    refused: "EBUSY: cannot delete chain a",
    after: ["chain a 0", "set v 1"],
  },
  {
    name: "a chain goes with its rules, and after what leads to it",
    given: (to) => to.chains("a", "b").jumps("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) =>
      to
        .deleteElements("v", [to.service(1)])
        .deleteChain("a")
        .deleteChain("b"),
    after: ["set v 0"],
  },
  {
    name: "a chain that jumps to itself stays until it is flushed",
    given: (to) => to.chains("a").jumps("a", "a"),
    when: (to) => to.deleteChain("a"),
    refused: "EBUSY: cannot delete chain a",
    after: ["chain a 1"],
  },
  { name: "a chain that is not there", when: (to) => to.deleteChain("a"), refused: "ENOENT: cannot delete chain a" },
  { name: "flushing one that is not there", when: (to) => to.flushChain("a"), refused: "ENOENT: cannot flush chain a" },
  {
    name: "a rule that is not there",
    given: (to) => to.chains("a").jumps("a", "a"),
    when: (to) => to.deleteRule("a", 999_999n),
    refused: "ENOENT: cannot delete a rule of chain a",
    after: ["chain a 1"],
  },
  {
    name: "a flush frees what rules referred to",
    given: (to) => to.chains("a", "b").verdicts("v").looksUp("a", "v").jumps("a", "b"),
    when: (to) => to.flushChain("a").deleteSet("v").deleteChain("b"),
    after: ["chain a 0"],
  },
  {
    name: "a set that a rule looks into stays",
    given: (to) => to.chains("a").verdicts("v").looksUp("a", "v"),
    when: (to) => to.deleteSet("v"),
    refused: "EBUSY: cannot delete set v",
    after: ["chain a 1", "set v 0"],
  },
  {
    name: "a set goes with its elements, and frees what they led to",
    given: (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.deleteSet("v").deleteChain("a"),
    after: [],
  },
  {
    name: "a set of other types",
    given: (to) => to.addresses("s"),
    when: (to) => to.data("s"),
    refused: "EEXIST: cannot add set s",
    after: ["set s 0"],
  },
  {
    name: "a set with other flags",
    given: (to) => to.addresses("s"),
    when: (to) => to.addresses("s", { flags: ["timeout"] }),
    refused: "EEXIST: cannot add set s",
    after: ["set s 0"],
  },
  {
    name: "a timeout without its flag",
    when: (to) => to.addresses("s", { timeout: 1000 }),
    refused: "EINVAL: cannot add set s",
  },
  {
    name: "a set may be named with another timeout",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 10_000 }),
    when: (to) => to.addresses("s", { flags: ["timeout"], timeout: 20_000 }),
    after: ["set s 0 timeout 20000"],
  },
  {
    name: "a key with another value",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) => to.addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    refused: "EEXIST: cannot add elements of set d",
    after: ["set d 1"],
  },
  {
    name: "a key with another verdict",
    given: (to) => to.chains("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "b" }),
    refused: "EEXIST: cannot add elements of set v",
    after: ["chain a 0", "chain b 0", "set v 1"],
  },
  {
    name: "a value is changed by taking it away first",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) =>
      to.deleteElements("d", [to.address(1)]).addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    after: ["set d 1"],
  },
  {
    name: "an element that is not there",
    given: (to) => to.addresses("s").addElements("s", [{ key: to.address(1) }]),
    when: (to) => to.deleteElements("s", [to.address(1), to.address(2)]),
    refused: "ENOENT: cannot delete elements of set s",
    after: ["set s 1"],
  },
  {
    name: "an element cannot go twice",
    given: (to) => to.addresses("s").addElements("s", [{ key: to.address(1) }]),
    when: (to) => to.deleteElements("s", [to.address(1), to.address(1)]),
    refused: "ENOENT: cannot delete elements of set s",
    after: ["set s 1"],
  },
  {
    name: "elements of a set that is not there",
    when: (to) => to.addElements("s", [{ key: to.address(1) }]),
    refused: "ENOENT: cannot add elements of set s",
  },
  {
    name: "a flushed set takes other values",
    given: (to) => to.data("d").addElements("d", [{ key: to.address(1), value: to.address(8) }]),
    when: (to) => to.flushSet("d").addElements("d", [{ key: to.address(1), value: to.address(9) }]),
    after: ["set d 1"],
  },
  {
    name: "a key that is too short",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: "00" }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "a set's element has no value",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: to.address(1), value: to.address(2) }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "a map's element has one",
    given: (to) => to.data("d"),
    when: (to) => to.addElements("d", [{ key: to.address(1) }]),
    refused: "EINVAL: cannot add elements of set d",
    after: ["set d 0"],
  },
  {
    name: "of the right length",
    given: (to) => to.data("d"),
    when: (to) => to.addElements("d", [{ key: to.address(1), value: "0000" }]),
    refused: "EINVAL: cannot add elements of set d",
    after: ["set d 0"],
  },
  {
    name: "an element that leads nowhere",
    given: (to) => to.verdicts("v"),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "a" }),
    refused: "ENOENT: cannot add elements of set v",
    after: ["set v 0"],
  },
  {
    name: "an element that leads to a base chain",
    given: (to) => to.base("nat").verdicts("v"),
    when: (to) => to.leads("v", 1, { kind: "goto", chain: "nat" }),
    refused: "ENOTSUP: cannot add elements of set v",
    after: ["chain nat 0", "set v 0"],
  },
  {
    name: "a set that is full",
    given: (to) => to.addresses("s", { size: 2 }),
    when: (to) =>
      to.addElements(
        "s",
        [1, 2, 3].map((n) => ({ key: to.address(n) })),
      ),
    refused: "ENFILE: cannot add elements of set s",
    after: ["set s 0 size 2"],
  },
  {
    name: "a timeout in a set that has none",
    given: (to) => to.addresses("s"),
    when: (to) => to.addElements("s", [{ key: to.address(1), timeout: 10_000 }]),
    refused: "EINVAL: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "an element may stay for less than its time",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    after: ["set s 1 timeout 100000"],
  },
  {
    name: "not for more",
    given: (to) => to.addresses("s", { flags: ["timeout"], timeout: 100_000 }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 150_000 }]),
    refused: "ERANGE: cannot add elements of set s",
    after: ["set s 0 timeout 100000"],
  },
  {
    name: "not where none has a time",
    given: (to) => to.addresses("s", { flags: ["timeout"] }),
    when: (to) => to.addElements("s", [{ key: to.address(1), expires: 50_000 }]),
    refused: "ENOTSUP: cannot add elements of set s",
    after: ["set s 0"],
  },
  {
    name: "a set that packets change has an end",
    given: (to) => to.chains("a").addresses("s", { flags: ["dynamic", "timeout"], timeout: 1000 }),
    when: (to) => to.remembers("a", "s"),
    after: ["chain a 1", "set s 0 timeout 1000 size 65535"],
  },
  {
    name: "a set of a fixed size is not changed by packets",
    given: (to) => to.chains("a").addresses("s", { size: 10 }),
    when: (to) => to.remembers("a", "s"),
    refused: "ENOTSUP: cannot add a rule of chain a",
    after: ["chain a 0", "set s 0 size 10"],
  },
  {
    name: "a time for an element where none has one",
    given: (to) => to.chains("a").addresses("s", { flags: ["dynamic"] }),
    when: (to) => to.remembers("a", "s", 5000),
    refused: "ENOTSUP: cannot add a rule of chain a",
    after: ["chain a 0", "set s 0"],
  },
  {
    name: "a circle that packets reach",
    given: (to) => to.base("nat").chains("a", "b").jumps("nat", "a").jumps("a", "b"),
    when: (to) => to.addresses("s").jumps("b", "a").addresses("t"),
    refused: "EMLINK: cannot add a rule of chain b",
    after: ["chain nat 1", "chain a 1", "chain b 0"],
  },
  {
    name: "a circle that an element closes",
    given: (to) => to.base("nat").chains("a").verdicts("v").jumps("nat", "a").looksUp("a", "v"),
    when: (to) => to.leads("v", 1, { kind: "drop" }).leads("v", 2, { kind: "goto", chain: "a" }),
    refused: "EMLINK: cannot add elements of set v",
    after: ["chain nat 1", "chain a 1", "set v 0"],
  },
  {
    name: "a circle that packets do not reach",
    when: (to) => to.chains("a", "b").jumps("a", "b").jumps("b", "a"),
    after: ["chain a 1", "chain b 1"],
  },
  {
    name: "fifteen chains below a base chain",
    when: (to) => {
      to.base("nat");
      nested(to, 15);
    },
    after: ["chain nat 1", ...Array.from({ length: 15 }, (_, at) => `chain c${at} ${at === 14 ? 0 : 1}`)],
  },
  {
    name: "sixteen are too many",
    when: (to) => {
      to.base("nat");
      nested(to, 16);
    },
    refused: "EMLINK: cannot add a rule of chain nat",
  },
  {
    name: "dnat elsewhere than in nat's hooks",
    when: (to) =>
      to
        .base("nat", "postrouting")
        .addRule("nat", { expressions: statements.dnatTo(to.family, hostOf(to.family), 80) }),
    refused: "ENOTSUP: cannot add a rule of chain nat",
  },
  {
    name: "dnat in a chain that nat's hooks do not reach",
    when: (to) =>
      to
        .base("filter", "forward", "filter")
        .chains("a")
        .jumps("filter", "a")
        .addRule("a", { expressions: statements.dnatTo(to.family, hostOf(to.family), 80) }),
    refused: "ENOTSUP: cannot add a rule of chain a",
  },
  {
    name: "masquerading in prerouting",
    when: (to) => to.base("nat").addRule("nat", { expressions: masquerade }),
    refused: "ENOTSUP: cannot add a rule of chain nat",
  },
  {
    name: "rejecting in postrouting",
    when: (to) => to.base("post", "postrouting", "filter").addRule("post", { expressions: rejectPacket(to.family) }),
    refused: "ENOTSUP: cannot add a rule of chain post",
  },
  {
    name: "rejecting in forward",
    when: (to) => to.base("forward", "forward", "filter").addRule("forward", { expressions: rejectPacket(to.family) }),
    after: ["chain forward 1"],
  },
  {
    name: "the table is replaced at once",
    given: (to) =>
      to
        .base("nat")
        .chains("a")
        .jumps("nat", "a")
        .addresses("s")
        .addElements("s", [{ key: to.address(1) }]),
    when: (to) =>
      to
        .deleteTable()
        .addTable()
        .base("nat")
        .chains("b")
        .addRule("b", { expressions: verdict({ kind: "drop" }) }),
    after: ["chain nat 0", "chain b 1"],
  },
  {
    name: "a replacement that fails leaves what was there, in its order",
    given: (to) =>
      to
        .chains("a", "b", "c")
        .addresses("s")
        .addElements("s", [{ key: to.address(1) }]),
    when: (to) => to.deleteChain("b").chains("b").deleteTable().addTable().deleteChain("c"),
    refused: "ENOENT: cannot delete chain c",
    after: ["chain a 0", "chain b 0", "chain c 0", "set s 1"],
  },
];

/** A chain below the other, with the way into them last. */
function nested(to: Draft, depth: number): void {
  const names = Array.from({ length: depth }, (_, at) => `c${at}`);
  to.chains(...names);
  for (const [at, name] of names.entries()) if (at > 0) to.jumps(`c${at - 1}`, name);
  to.jumps("nat", "c0");
}

function hostOf(family: NftFamily): string {
  return family === "ip" ? "10.0.0.1" : "fd00::1";
}
