import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Requests /livez ten times a second, as a kubelet does on a connection of its own each time, and each time a control
 * server as well: what that one takes is the machine's doing. Reports (`LivezReport`) on request.
 * Usage: livez-main.ts PORT CONTROL-PORT
 */
export interface LivezReport {
  readonly asked: number;
  /** What came of those that were not answered with 200. */
  readonly refused: readonly string[];
  /** Milliseconds. */
  readonly slowest: number;
  /** The most that an answer took longer than the control's at the same time, in milliseconds. */
  readonly slowerThanControl: number;
}

const [, , port = "", controlPort = ""] = process.argv;
const PAUSE_MS = 100;
const PATIENCE_MS = 120_000;

let asked = 0;
let slowest = 0;
let slowerThanControl = 0;
const REFUSED: string[] = [];
/** When the question was sent that has no answer yet. */
let since: number | undefined;

answerLines(() => {
  const waiting = since === undefined ? 0 : performance.now() - since;
  const seen: LivezReport = {
    asked,
    refused: REFUSED,
    slowest: Math.max(slowest, waiting),
    slowerThanControl: Math.max(slowerThanControl, waiting),
  };
  return JSON.stringify(seen);
});

for (;;) {
  since = performance.now();
  const [livez, control] = await Promise.all([ask(port), ask(controlPort)]);
  since = undefined;
  asked++;
  slowest = Math.max(slowest, livez.ms);
  slowerThanControl = Math.max(slowerThanControl, livez.ms - control.ms);
  if (livez.what !== "200") REFUSED.push(livez.what);
  await sleep(PAUSE_MS);
}

function ask(at: string): Promise<{ readonly what: string; readonly ms: number }> {
  const sent = performance.now();
  return new Promise((resolve) => {
    const end = (what: string) => resolve({ what, ms: performance.now() - sent });
    const call = request({ host: "127.0.0.1", port: at, path: "/livez", agent: false, timeout: PATIENCE_MS });
    call.on("response", (response) => response.resume().on("end", () => end(String(response.statusCode))));
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.on("error", (error) => end(error.message));
    call.end();
  });
}
