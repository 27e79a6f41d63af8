import { request } from "node:https";
import { setTimeout as sleep } from "node:timers/promises";
import { codeOf } from "@fairlead/lab/peer/protocol";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Asks an API server for its version without a pause, each time on a connection of its own. Any line is answered by
 * `{"requests", "failures"}` as JSON: how many requests there were, and the code of each that had no answer.
 * Usage: api-load-main.ts ADDRESS PORT
 */
const [host = "", port = ""] = process.argv.slice(2);
const PAUSE_MS = 100;
const TIMEOUT_MS = 3_000;

const failures: string[] = [];
let requests = 0;

function ask(): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const options = { host, port, path: "/version", agent: false, rejectUnauthorized: false, timeout: TIMEOUT_MS };
  const call = request(options, (response) => {
    response.on("end", () => resolve());
    response.on("error", reject);
    response.resume();
  });
  call.on("timeout", () => call.destroy(new Error("lost")));
  call.on("error", reject);
  call.end();
  return promise;
}

answerLines(() => JSON.stringify({ requests, failures }));
for (;;) {
  await ask().catch((error: unknown) => failures.push(codeOf(error)));
  requests++;
  await sleep(PAUSE_MS);
}
