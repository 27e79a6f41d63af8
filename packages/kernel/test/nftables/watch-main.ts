import { setTimeout } from "node:timers/promises";
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

/** What is told of a piece of work: its first news, or nothing within some looks of the listener. */
async function newsOf(work: () => Promise<unknown>): Promise<NftablesNews | "nothing"> {
  TOLD.length = 0;
  arrived = Promise.withResolvers<void>();
  await work();
  await Promise.race([arrived.promise, setTimeout(1_000)]);
  return TOLD[0] ?? "nothing";
}

const asNft = (...args: readonly string[]) => runner.run(["nft", ...args]);
const many = (from: number) => Array.from({ length: 20_000 }, (_, at) => ({ key: hostHex(from + at) }));

const result = {
  problems: PROBLEMS,
  first: await newsOf(() => asNft("add", "table", "ip6", NAME)),
  own: await newsOf(() => nft.commit(new NftBatch("ip", NAME).addElements("many", [{ key: hostHex(1) }]))),
  ownLarge: await newsOf(() => nft.commit(new NftBatch("ip", NAME).addElements("many", many(100)))),
  refusedLarge: await newsOf(() =>
    nft.commit(new NftBatch("ip", NAME).addElements("many", many(100_000)).deleteChain("none")).catch(() => {}),
  ),
  otherTable: await newsOf(() => asNft("add", "table", "ip", "other")),
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
