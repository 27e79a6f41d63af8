import { openSync } from "node:fs";
import { acquireNodeLock, nodeLockProcess } from "../src/index.ts";
import { lockByte, lockPlace } from "../src/node-lock.ts";

/**
 * A program that says one line and lives on: `as-agent FOLDER…` takes the node's lock, `as-anybody FILE` locks a file
 * of its own as an agent would, `who` says which process holds the lock.
 */
const [what, ...paths] = process.argv.slice(2);
const say = (text: string) => process.stdout.write(`${text}\n`);
setInterval(() => {}, 60_000);
if (what === "who") say(String(await nodeLockProcess()));
else if (what === "as-anybody")
  say(`locked ${await lockByte(openSync(paths[0] ?? "", "w", 0o644), await lockPlace(""))}`);
else {
  await acquireNodeLock({ version: "1.2.3", startedAt: Date.UTC(2030, 0, 1), folders: paths }).then(
    ({ doubt }) => say(`${process.pid} held; doubt: ${doubt}`),
    (error: unknown) => say(String(error)),
  );
}
