import { hostHex, NftBatch } from "@fairlead/netfilter/nft";
import { createRunner, type NftablesNews, openNftables } from "../../src/index.ts";

/** Runs in a namespace of its own: changes tables as itself and by `nft`, and prints what a watch told. */
const NAME = "kube-proxy";
const nft = await openNftables();
const runner = createRunner();
const stop = new AbortController();
const TOLD: NftablesNews[] = [];
const PROBLEMS: string[] = [];
let arrived = Promise.withResolvers<void>();

const SET = { name: "many", key: ["ipv4_addr"], flags: [] } as const;
await nft.commit(new NftBatch("ip", NAME).addTable().addSet(SET));

const listening = Promise.withResolvers<void>();
const watching = (async () => {
  const onProblem = (error: unknown) => PROBLEMS.push(String(error));
  for await (const news of nft.watch({
    signal: stop.signal,
    tables: [NAME],
    onListening: listening.resolve,
    onProblem,
  })) {
    TOLD.push(news);
    arrived.resolve();
  }
})();

await listening.promise;

const asNft = (...args: readonly string[]) => runner.run(["nft", ...args]);

/** The first news of a piece of work. */
async function newsOf(work: () => Promise<unknown>): Promise<NftablesNews | undefined> {
  TOLD.length = 0;
  arrived = Promise.withResolvers<void>();
  await work();
  await arrived.promise;
  return TOLD[0];
}

let marks = 0;

/** As `newsOf` for work of which nothing is expected: nft changes the table of IPv6 afterwards, which is reported. */
async function newsBeforeMark(work: () => Promise<unknown>): Promise<NftablesNews | "nothing" | undefined> {
  const first = await newsOf(async () => {
    await work();
    await asNft("add", "chain", "ip6", NAME, `mark-${marks++}`);
  });
  const isMark = first?.kind === "transaction" && first.tables.every(({ family }) => family === "ip6");
  return isMark ? "nothing" : first;
}
const many = (from: number) => Array.from({ length: 20_000 }, (_, at) => ({ key: hostHex(from + at) }));

const result = {
  problems: PROBLEMS,
  first: await newsOf(() => asNft("add", "table", "ip6", NAME)),
  own: await newsBeforeMark(() => nft.commit(new NftBatch("ip", NAME).addElements("many", [{ key: hostHex(1) }]))),
  ownLarge: await newsBeforeMark(() => nft.commit(new NftBatch("ip", NAME).addElements("many", many(100)))),
  refusedLarge: await newsBeforeMark(() =>
    nft.commit(new NftBatch("ip", NAME).addElements("many", many(100_000)).deleteChain("none")).catch(() => {}),
  ),
  otherTable: await newsBeforeMark(() => asNft("add", "table", "ip", "other")),
  element: await newsOf(() => asNft("add", "element", "ip", NAME, "many", "{ 10.0.0.1 }")),
  generation: await nft.generation(),
  flushed: await newsOf(() => asNft("flush", "ruleset")),
  meanwhile: await newsOf(async () => {
    await nft.commit(new NftBatch("ip", NAME).addTable().addSet(SET));
    for (let n = 0; n < 20 && TOLD.length === 0; n += 1) {
      await Promise.all([
        nft.commit(new NftBatch("ip", NAME).addElements("many", many(200_000 + n * 20_000))),
        asNft("add", "element", "ip", NAME, "many", `{ 10.0.1.${n} }`),
      ]);
    }
  }),
};
stop.abort();
await watching;
await nft.close();
process.stdout.write(JSON.stringify(result));
