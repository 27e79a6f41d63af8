import { statements } from "@fairlead/netfilter/nft";
import type { Case } from "../case.ts";

const { goTo, verdict } = statements;

/** What counts together, and what is left where one message is refused. */
export const TRANSACTIONS: readonly Case[] = [
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
