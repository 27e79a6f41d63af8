import { hostHex, NftBatch } from "@fairlead/netfilter/nft";
import { NftablesError, openNftables } from "../../src/index.ts";

/** Runs in a user namespace: sends transactions that nearly fill the room that there is, and one that is larger. */
const nft = await openNftables();
const SET = { name: "many", key: ["ipv4_addr"], flags: [] } as const;

/** Comments make it long without many elements. */
function batchOf(bytes: number): { readonly batch: NftBatch; readonly count: number } {
  const batch = new NftBatch("ip", "room", bytes).addTable().addSet(SET).flushSet("many");
  const comment = "x".repeat(120);
  let count = 0;
  for (; batch.length < bytes - 32_768; count += 100) {
    const elements = Array.from({ length: 100 }, (_, at) => ({ key: hostHex(count + at), comment }));
    batch.addElements("many", elements);
  }
  return { batch, count };
}

const WANTED = 64 << 20;
const room = nft.roomFor(WANTED);
const { batch, count } = batchOf(Math.min(room, 8 << 20));
await nft.commit(batch);
const written = await nft.elements("ip", "room", "many", [hostHex(0), hostHex(count - 1)]);
const refused = await nft.commit(batchOf(room + 100_000).batch).then(
  () => "accepted",
  (error: unknown) => (error instanceof NftablesError ? error.message : String(error)),
);
await nft.close();
process.stdout.write(
  JSON.stringify({ room, isBounded: room < WANTED, length: batch.length, written: written.length, refused }),
);
