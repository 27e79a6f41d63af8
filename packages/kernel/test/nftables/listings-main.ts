import { readdirSync, readFileSync } from "node:fs";
import { type NftTable, readTables, readTablesFromJson, tableText } from "@fairlead/netfilter/nft";
import { createRunner, openNftables } from "../../src/index.ts";

/**
 * Runs in a namespace of its own: has `nft` load kube-proxy's tables, and prints what the kernel says by netlink, what
 * nft lists, and what is read from its text and its JSON, all in the words of one printer.
 */
const golden = new URL("../../../testkit/fixtures/golden/", import.meta.url);
const nft = await openNftables();
const runner = createRunner();
const list = async (...options: readonly string[]) => (await runner.run(["nft", ...options, "list", "ruleset"])).stdout;

const SEEN: Record<string, { netlink: string[]; text: string[]; json: string[] }> = {};
for (const name of readdirSync(golden).filter((file) => file.endsWith(".nft"))) {
  await runner.run(["nft", "flush", "ruleset"]);
  await runner.run(["nft", "-f", "-"], { input: readFileSync(new URL(name, golden), "utf8") });
  const text = readTables(await list());
  const read = await Promise.all(text.map(({ family, name }) => nft.table(family, name)));
  SEEN[name] = {
    netlink: read.flatMap((table) => (table === undefined ? [] : lines(table))),
    text: text.flatMap(lines),
    json: readTablesFromJson(JSON.parse(await list("-j"))).flatMap(lines),
  };
}
await nft.close();
process.stdout.write(JSON.stringify(SEEN));

/** Elements come in any order. */
function lines(table: NftTable): string[] {
  const sets = Array.from(table.sets, ([name, set]) => {
    const elements = [...set.elements].sort(([one], [other]) => (one < other ? -1 : 1));
    return [name, { ...set, elements: new Map(elements) }] as const;
  });
  return tableText({ ...table, sets: new Map(sets) }).split("\n");
}
