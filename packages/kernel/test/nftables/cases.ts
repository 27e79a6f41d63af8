import { statements } from "@fairlead/netfilter/nft";
import { type Case, caseOf, type Row } from "./draft.ts";
import { ELEMENTS, SETS } from "./set-cases.ts";

const { goTo, lookUp, verdict } = statements;

/** What counts together, and what is left where one message is refused. */
const TRANSACTIONS: readonly Row[] = [
  [
    "chains, sets and elements are made and filled",
    (to) => {
      to.base("nat").chains("a").jumps("nat", "a").addresses("s").verdicts("v").looksUp("a", "v");
      to.addElements("s", [{ key: to.address(1) }, { key: to.address(2), comment: "two" }]);
      to.leads("v", 1, { kind: "drop" });
    },
    "chain nat 1, chain a 1, set s 2, set v 1",
  ],
  [
    "what is there already is no error",
    (to) => to.addTable().base("nat").chains("a").addresses("s").has("s", 1),
    "chain nat 0, chain a 0, set s 1",
    (to) => to.base("nat").chains("a").addresses("s").has("s", 1),
  ],
  [
    "all or nothing",
    (to) =>
      to
        .deleteElements("s", [to.address(1)])
        .chains("b")
        .addRule("a", { expressions: goTo("b") })
        .deleteSet("none"),
    "ENOENT: cannot delete set none",
    (to) => to.chains("a").jumps("a", "a").flushChain("a").addresses("s").has("s", 1),
  ],
  [
    "the first message that is refused is blamed",
    (to) => to.jumps("nowhere", "a").deleteSet("none"),
    "ENOENT: cannot add a rule of chain nowhere",
  ],
  [
    "the table is replaced at once",
    (to) =>
      to
        .deleteTable()
        .addTable()
        .base("nat")
        .chains("b")
        .addRule("b", { expressions: verdict({ kind: "drop" }) }),
    "chain nat 0, chain b 1",
    (to) => to.base("nat").chains("a").jumps("nat", "a").addresses("s").has("s", 1),
  ],
  [
    "a replacement that fails leaves what was there, in its order",
    (to) => to.deleteChain("b").chains("b").deleteTable().addTable().deleteChain("c"),
    "ENOENT: cannot delete chain c",
    (to) => to.chains("a", "b", "c").addresses("s").has("s", 1),
  ],
];

/** Chains: their names, hooks and ends. */
const CHAINS: readonly Row[] = [
  ["a chain cannot become a base chain", (to) => to.base("a"), "ENOTSUP: cannot add chain a", (to) => to.chains("a")],
  [
    "a base chain keeps its hook",
    (to) => to.base("nat", "output"),
    "ENOTSUP: cannot add chain nat",
    (to) => to.base("nat"),
  ],
  ["a base chain may be named without its hook", (to) => to.chains("nat"), "chain nat 0", (to) => to.base("nat")],
  ["a name of 255 bytes is not too long", (to) => to.chains("x".repeat(255)), `chain ${"x".repeat(255)} 0`],
  ["one of 256 bytes is", (to) => to.chains("x".repeat(256)), `ERANGE: cannot add chain ${"x".repeat(256)}`],
  [
    "a chain that a rule jumps to stays",
    (to) => to.deleteChain("b"),
    "EBUSY: cannot delete chain b",
    (to) => to.chains("a", "b").jumps("a", "b"),
  ],
  [
    "a chain that an element leads to stays",
    (to) => to.deleteChain("a"),
    "EBUSY: cannot delete chain a",
    (to) => to.chains("a").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
  ],
  [
    "a chain goes with its rules, and after what leads to it",
    (to) =>
      to
        .deleteElements("v", [to.service(1)])
        .deleteChain("a")
        .deleteChain("b"),
    "set v 0",
    (to) => to.chains("a", "b").jumps("a", "b").verdicts("v").leads("v", 1, { kind: "goto", chain: "a" }),
  ],
  [
    "a chain that jumps to itself stays until it is flushed",
    (to) => to.deleteChain("a"),
    "EBUSY: cannot delete chain a",
    (to) => to.chains("a").jumps("a", "a"),
  ],
  ["a chain that is not there", (to) => to.deleteChain("a"), "ENOENT: cannot delete chain a"],
  ["flushing one that is not there", (to) => to.flushChain("a"), "ENOENT: cannot flush chain a"],
];

/** Rules: what they may refer to. */
const RULES: readonly Row[] = [
  ["a jump to nowhere", (to) => to.chains("a").jumps("a", "b"), "ENOENT: cannot add a rule of chain a"],
  [
    "a jump to a base chain",
    (to) => to.base("nat").chains("a").jumps("a", "nat"),
    "ENOTSUP: cannot add a rule of chain a",
  ],
  [
    "a lookup in a set that is not there",
    (to) => to.chains("a").looksUp("a", "v"),
    "ENOENT: cannot add a rule of chain a",
  ],
  [
    "a set gives no verdict",
    (to) =>
      to
        .chains("a")
        .addresses("s")
        .addRule("a", { expressions: lookUp(to.family, ["daddr"], "s", "verdict") }),
    "EINVAL: cannot add a rule of chain a",
  ],
  [
    "a map of data gives no verdict",
    (to) =>
      to
        .chains("a")
        .data("d")
        .addRule("a", { expressions: lookUp(to.family, ["daddr"], "d", "verdict") }),
    "EINVAL: cannot add a rule of chain a",
  ],
  [
    "a map of verdicts gives no data",
    (to) =>
      to
        .chains("a")
        .verdicts("v")
        .addRule("a", {
          expressions: [
            ...lookUp(to.family, ["daddr", "l4proto", "dport"], "v").slice(0, -1),
            { kind: "lookup", set: "v", from: 0, to: 0 },
          ],
        }),
    "EINVAL: cannot add a rule of chain a",
  ],
  [
    "a rule that is not there",
    (to) => to.deleteRule("a", 999_999n),
    "ENOENT: cannot delete a rule of chain a",
    (to) => to.chains("a").jumps("a", "a"),
  ],
  [
    "a flush frees what rules referred to",
    (to) => to.flushChain("a").deleteSet("v").deleteChain("b"),
    "chain a 0",
    (to) => to.chains("a", "b").verdicts("v").looksUp("a", "v").jumps("a", "b"),
  ],
];

/** What a transaction does: run on the real kernel and on the fake, in both families. */
export const cases: readonly Case[] = [...TRANSACTIONS, ...CHAINS, ...RULES, ...SETS, ...ELEMENTS].map(caseOf);
