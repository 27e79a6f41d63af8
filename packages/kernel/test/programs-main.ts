import { openSync } from "node:fs";
import { hostHex, NftBatch } from "@fairlead/netfilter/nft";
import { acquireNodeLock, NftablesError, nodeLockProcess, openNftables } from "../src/index.ts";
import { lockByte, lockPlace } from "../src/node-lock.ts";

/**
 * What tests start in a process of its own, since it is killed or stands in a user namespace. Each prints lines, or one
 * of JSON. Arguments: NAME, and what the program takes.
 */
const PROGRAMS: Readonly<Record<string, (...args: readonly string[]) => Promise<unknown>>> = {
  /** Sends transactions that nearly fill the room that there is, and one that is larger. */
  async room() {
    const wanted = 64 << 20;
    const nft = await openNftables();
    const room = nft.roomFor(wanted);
    const { batch, count } = batchOf(Math.min(room, 8 << 20));
    await nft.commit(batch);
    const written = (await nft.table("ip", "room"))?.sets.get("many")?.elements.size === count;
    const refused = await nft.commit(batchOf(room + 100_000).batch).then(
      () => "accepted",
      (error: unknown) => (error instanceof NftablesError ? error.message : String(error)),
    );
    await nft.close();
    return { room, isBounded: room < wanted, length: batch.length, written, refused };
  },

  async "lock-as-agent"(...folders) {
    const lock = acquireNodeLock({ version: "1.2.3", startedAt: Date.UTC(2030, 0, 1), folders });
    say(await lock.then(({ doubt }) => `${process.pid} held; doubt: ${doubt}`, String));
    await liveOn();
  },

  async "lock-as-anybody"(file = "") {
    say(`locked ${await lockByte(openSync(file, "w", 0o644), await lockPlace(""))}`);
    await liveOn();
  },

  async "lock-holder"() {
    say(String(await nodeLockProcess()));
    await liveOn();
  },
};

const [, , name = "", ...args] = process.argv;
const answer = await PROGRAMS[name]?.(...args);
if (answer !== undefined) process.stdout.write(JSON.stringify(answer));

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function liveOn(): Promise<never> {
  setInterval(() => {}, 60_000);
  return new Promise(() => {});
}

/** Comments make it long without many elements. */
function batchOf(bytes: number): { readonly batch: NftBatch; readonly count: number } {
  const set = { name: "many", key: ["ipv4_addr"], flags: [] } as const;
  const batch = new NftBatch("ip", "room", bytes).addTable().addSet(set).flushSet("many");
  const comment = "x".repeat(240);
  let count = 0;
  for (; batch.length < bytes - 32_768; count += 100) {
    const elements = Array.from({ length: 100 }, (_, at) => ({ key: hostHex(count + at), comment }));
    batch.addElements("many", elements);
  }
  return { batch, count };
}
