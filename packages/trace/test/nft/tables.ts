import { type Expression, type NftRule, type NftTable, readTables } from "@fairlead/netfilter/nft";

/** As nft lists it, or what nft has no words for here. */
type Rule = string | readonly Expression[];

/**
 * A table of chains by name; `prerouting nat` and `forward filter 10 drop` are base chains.
 *
 * @param sets as nft lists them
 */
export function tableOf(
  chains: Readonly<Record<string, readonly Rule[]>>,
  sets: readonly string[] = [],
  { family = "ip", name = "t" }: Partial<Pick<NftTable, "family" | "name">> = {},
): NftTable {
  const made = Object.entries(chains).map(([words, rules]) => {
    const texts = rules.map((rule) => (typeof rule === "string" ? rule : "counter"));
    return `chain ${nameOf(words)} {\n${baseOf(words)}\n${texts.join("\n")}\n}\n`;
  });
  const [table] = readTables(`table ${family} ${name} {\n${[...sets, ...made].join("\n")}}\n`);
  if (table === undefined) throw new Error("the test's table is none");
  const own = Object.entries(chains).map(([words, rules]) => {
    const chain = table.chains.get(nameOf(words));
    const read = rules.map((rule, at): NftRule | undefined =>
      typeof rule === "string" ? chain?.rules[at] : { expressions: rule },
    );
    return [
      nameOf(words),
      { ...chain, name: nameOf(words), rules: read.filter((rule) => rule !== undefined) },
    ] as const;
  });
  return { ...table, chains: new Map(own) };
}

function nameOf(words: string): string {
  return words.replaceAll(" ", "-");
}

const PRIORITIES: Readonly<Record<string, number>> = { prerouting: -100, output: -100, postrouting: 100, input: 100 };

function baseOf(words: string): string {
  const [, hook = "", type, given, policy = "accept"] =
    /^(\w+) (filter|nat|route)(?: (-?\d+))?(?: (drop))?$/.exec(words) ?? [];
  if (type === undefined) return "";
  const priority = given ?? (type === "nat" ? PRIORITIES[hook] : 0);
  return `type ${type} hook ${hook} priority ${priority}; policy ${policy};`;
}
