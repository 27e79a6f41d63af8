import { type NftFamily, statements } from "@fairlead/netfilter/nft";
import type { Case } from "../case.ts";

const { lookUp, MASQUERADE, rejectPacket } = statements;

/** Rules: what they may refer to, and where. */
export const RULES: readonly Case[] = [
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

function hostOf(family: NftFamily): string {
  return family === "ip" ? "10.0.0.1" : "fd00::1";
}
