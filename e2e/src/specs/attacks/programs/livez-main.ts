import { readFileSync } from "node:fs";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { answerLines } from "@fairlead/lab/support/script";

/**
 * Requests /livez ten times a second, as a kubelet does on a connection of its own each time, and each time looks at
 * what the agent's thread did until the answer came. How long that took by the clock is as much the machine's doing, so
 * it is a figure and no more. Reports (`LivezReport`) on request. Usage: livez-main.ts PORT PID
 */
export interface LivezReport {
  readonly asked: number;
  /** What came of those that were not answered with 200. */
  readonly refused: readonly string[];
  /** Milliseconds by the clock. */
  readonly slowest: number;
  /** The most that the agent's thread worked before it answered, in milliseconds of processor time. */
  readonly mostWork: number;
  /** The most that it worked or slept before it answered, in milliseconds; waits for a processor are left out. */
  readonly longestOwn: number;
}

const [, , port = "", pid = ""] = process.argv;
const PAUSE_MS = 100;
const PATIENCE_MS = 120_000;

interface Moment {
  readonly at: number;
  /** Milliseconds since the thread began. */
  readonly worked: number;
  readonly queued: number;
}

let asked = 0;
let [slowest, mostWork, longestOwn] = [0, 0, 0];
const REFUSED: string[] = [];
/** When the question was sent that has no answer yet. */
let began: Moment | undefined;
let last: Moment = { at: 0, worked: 0, queued: 0 };

const { queued, worked } = now();
if (queued + worked === 0) throw new Error("this kernel does not account for threads (CONFIG_SCHED_INFO)");

answerLines(() => {
  take();
  const seen: LivezReport = { asked, refused: REFUSED, slowest, mostWork, longestOwn };
  return JSON.stringify(seen);
});

for (;;) {
  began = now();
  const what = await ask();
  take();
  began = undefined;
  asked++;
  if (what !== "200") REFUSED.push(what);
  await sleep(PAUSE_MS);
}

function take(): void {
  if (began === undefined) return;
  const { at, worked, queued } = now();
  slowest = Math.max(slowest, at - began.at);
  mostWork = Math.max(mostWork, worked - began.worked);
  longestOwn = Math.max(longestOwn, at - began.at - (queued - began.queued));
}

/** Of the agent's first thread, which runs its event loop (proc(5), schedstat); a process that is gone does nothing. */
function now(): Moment {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8");
    const [worked = 0, queued = 0] = text.split(" ").map((nanoseconds) => Number(nanoseconds) / 1e6);
    last = { at: performance.now(), worked, queued };
  } catch {
    last = { ...last, at: performance.now() };
  }
  return last;
}

function ask(): Promise<string> {
  return new Promise((resolve) => {
    const call = request({ host: "127.0.0.1", port, path: "/livez", agent: false, timeout: PATIENCE_MS });
    call.on("response", (response) => response.resume().on("end", () => resolve(String(response.statusCode))));
    call.on("timeout", () => call.destroy(new Error("no answer")));
    call.on("error", (error) => resolve(error.message));
    call.end();
  });
}
