import { hostHex, NftBatch } from "@fairlead/netfilter/nft";
import { expect } from "vitest";
import { type NftablesNews, openNftables } from "../../src/index.ts";
import { insideTest } from "../kernel-test.ts";

const NAME = "kube-proxy";
const SET = { name: "many", key: ["ipv4_addr"], flags: [] } as const;
const BY_NFT = { kind: "transaction", process: { id: expect.any(Number), name: "nft" } };

const many = (from: number) => Array.from({ length: 20_000 }, (_, at) => ({ key: hostHex(from + at) }));

insideTest(
  "a watch reports what others do to a table, and what it missed as lost; it does not report own transactions",
  async ({ runner }) => {
    const nft = await openNftables();
    const stop = new AbortController();
    const reports: NftablesNews[] = [];
    const problems: string[] = [];
    let arrived = Promise.withResolvers<void>();

    await nft.commit(new NftBatch("ip", NAME).addTable().addSet(SET));

    const listening = Promise.withResolvers<void>();
    const watching = (async () => {
      const onProblem = (error: unknown) => problems.push(String(error));
      for await (const news of nft.watch({
        signal: stop.signal,
        tables: [NAME],
        onListening: listening.resolve,
        onProblem,
      })) {
        reports.push(news);
        arrived.resolve();
      }
    })();

    await listening.promise;

    const asNft = (...args: readonly string[]) => runner.run(["nft", ...args]);

    async function newsOf(work: () => Promise<unknown>): Promise<NftablesNews | undefined> {
      reports.length = 0;
      arrived = Promise.withResolvers<void>();
      await work();
      await arrived.promise;
      return reports[0];
    }

    let marks = 0;

    /** As `newsOf` for work of which nothing is expected: nft changes the table of IPv6 afterwards. */
    async function newsBeforeMark(work: () => Promise<unknown>): Promise<NftablesNews | "nothing" | undefined> {
      const first = await newsOf(async () => {
        await work();
        await asNft("add", "chain", "ip6", NAME, `mark-${marks++}`);
      });
      const isMark = first?.kind === "transaction" && first.tables.every(({ family }) => family === "ip6");
      return isMark ? "nothing" : first;
    }

    expect(await newsOf(() => asNft("add", "table", "ip6", NAME))).toEqual({
      ...BY_NFT,
      generation: expect.any(Number),
      tables: [{ family: "ip6", name: NAME }],
    });
    const table = () => new NftBatch("ip", NAME);
    const unreported: readonly (() => Promise<unknown>)[] = [
      () => nft.commit(table().addElements("many", [{ key: hostHex(1) }])),
      () => nft.commit(table().addElements("many", many(100))),
      () => nft.commit(table().addElements("many", many(100_000)).deleteChain("none")).catch(() => {}),
      () => asNft("add", "table", "ip", "other"),
    ];
    for (const work of unreported) expect(await newsBeforeMark(work)).toBe("nothing");
    const element = await newsOf(() => asNft("add", "element", "ip", NAME, "many", "{ 10.0.0.1 }"));
    const generation = await nft.generation();
    expect(element).toEqual({ ...BY_NFT, generation, tables: [{ family: "ip", name: NAME }] });
    expect(await newsOf(() => asNft("flush", "ruleset"))).toEqual({
      ...BY_NFT,
      generation: expect.any(Number),
      tables: expect.arrayContaining([
        { family: "ip", name: NAME },
        { family: "ip6", name: NAME },
      ]),
    });
    const meanwhile = await newsOf(async () => {
      await nft.commit(table().addTable().addSet(SET));
      for (let n = 0; n < 20 && reports.length === 0; n += 1) {
        await Promise.all([
          nft.commit(table().addElements("many", many(200_000 + n * 20_000))),
          asNft("add", "element", "ip", NAME, "many", `{ 10.0.1.${n} }`),
        ]);
      }
    });
    expect(meanwhile).toSatisfy((news) => news.kind === "lost" || news.process.name === "nft");
    expect(problems).toEqual([]);
    stop.abort();
    await watching;
    await nft.close();
  },
);
