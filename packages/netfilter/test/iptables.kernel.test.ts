import fc from "fast-check";
import { describe, expect } from "vitest";
import {
  type Command,
  type IPFamily,
  parseSave,
  type Rule,
  RuleTextError,
  renderRule,
  renderTable,
  type Table,
} from "../src/index.ts";
import { plainComment, rules } from "./arbitraries.ts";
import { kernelTest, stored, type Variant } from "./iptables.ts";

const CHAINS = ["KUBE-A", "cali-b"];
const RULES_A_RUN = 300;

const combinations = (["IPv4", "IPv6"] as const).flatMap((family) =>
  (["filter", "nat"] as const).map((table): [IPFamily, "filter" | "nat"] => [family, table]),
);

/** All rules in one chain of one table that begins empty. */
function payload(table: Table, list: readonly Rule[]): string {
  const commands: Command[] = [
    { kind: "chain", chain: "X" },
    ...CHAINS.map((chain): Command => ({ kind: "chain", chain })),
    ...list.map((rule): Command => ({ kind: "append", chain: "X", rule })),
  ];
  return [...renderTable({ table, commands })].join("");
}

/** The lines of chain X without `-A X`. */
function linesOf(saved: string): string[] {
  return [...saved.matchAll(/^-A X ?(.*)$/gm)].map(([, words = ""]) => words);
}

/** Comments that the renderer takes, of the sort that somebody would try. */
const hostileComment = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 80 }),
    fc
      .array(
        fc.constantFrom(
          '"',
          "'",
          "\\",
          " ",
          "  ",
          "--",
          "-j",
          "ACCEPT",
          "-t nat",
          "!",
          "#",
          "COMMIT",
          "$(x)",
          "`x`",
          "é",
        ),
        {
          maxLength: 12,
        },
      )
      .map((parts) => parts.join("")),
  )
  .filter((text) => {
    try {
      return renderRule({ matches: [{ kind: "comment", text }] }) !== "";
    } catch (error) {
      if (error instanceof RuleTextError) return false;
      throw error;
    }
  });

describe.each<Variant>(["nft", "legacy"])("the real iptables, %s variant", (variant) => {
  describe.each(combinations)("%s %s", (family, table) => {
    kernelTest(variant, "prints random rules as we do", () => {
      const kind = rules({ family, table, chains: CHAINS, objects: false, comment: plainComment });
      const list = fc.sample(kind, RULES_A_RUN);
      const saved = stored(variant, family, payload(table, list));
      expect(linesOf(saved)).toEqual(list.map(renderRule));
      expect(parseSave(saved, { family }).get(table)?.chains.get("X")?.rules).toEqual(list);
    });
  });

  kernelTest(variant, "stores one rule with just that comment, whatever it says", () => {
    const list = fc.sample(hostileComment, RULES_A_RUN).map((text): Rule => ({ matches: [{ kind: "comment", text }] }));
    const saved = stored(variant, "IPv4", payload("filter", list));
    const filter = parseSave(saved).get("filter");
    expect(filter?.chains.get("X")?.rules).toEqual(list);
    expect([...(filter?.chains.values() ?? [])].reduce((sum, chain) => sum + chain.rules.length, 0)).toBe(list.length);
  });
});
