import { type NftFamily, statements } from "@fairlead/netfilter/nft";
import type { Case, Draft } from "./draft.ts";
import { ELEMENTS, SETS } from "./set-cases.ts";

const { MASQUERADE, goTo, lookUp, rejectPacket, verdict } = statements;

/** What counts together, and what is left where one message is refused. */
const TRANSACTIONS: readonly Case[] = [
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

const HOOKED: readonly string[] = ["chain nat 0"];

/** Chains: their names, hooks and ends, and how deep they may lead. */
const CHAINS: readonly Case[] = [
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
];

/** Rules: what they may refer to, and where. */
const RULES: readonly Case[] = [
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
    when: (to) => to.base("nat").addRule("nat", { expressions: MASQUERADE }),
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
];

/** What a transaction does: run on the real kernel and on the fake, in both families. */
export const cases: readonly Case[] = [...TRANSACTIONS, ...CHAINS, ...RULES, ...SETS, ...ELEMENTS];

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
