import type { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import { sleep, systemClock } from "@fairlead/base";
import { PLAIN_TEXT } from "./answers.ts";
import type { Answer, Handler } from "./app.ts";

/** Profiles of this process, in the formats that Chrome's DevTools and editors open. */
export interface Profiles {
  /** A .cpuprofile of the next seconds, or of those until `stop` aborts. */
  cpu(seconds: number, stop: AbortSignal): Promise<string>;
  /** A .heapsnapshot; the process stands still while it is taken and needs as much memory again. */
  heap(): Readable;
}

const INDEX = `/debug/pprof/profile?seconds=30  CPU profile (.cpuprofile)
/debug/pprof/heap                heap snapshot (.heapsnapshot)
`;
const LONGEST_SECONDS = 300;
const attachment = (name: string) => ({
  "Content-Type": "application/json",
  "Content-Disposition": `attachment; filename="${name}"`,
  "X-Content-Type-Options": "nosniff",
});

/** What stands in for Go's /debug/pprof; only with enableProfiling. */
export function profileRoutes(profiles: Profiles): Readonly<Record<string, Handler>> {
  let [busy, reading] = [false, false];
  const profile: Handler = async ({ query, gone }) => {
    const seconds = Number(query.get("seconds") ?? "30");
    if (!(seconds > 0 && seconds <= LONGEST_SECONDS))
      return text(400, `seconds must be a number up to ${LONGEST_SECONDS}\n`);
    if (busy) return text(409, "a CPU profile is being taken already\n");
    busy = true;
    try {
      return { status: 200, headers: attachment("fairlead-proxy.cpuprofile"), body: await profiles.cpu(seconds, gone) };
    } finally {
      busy = false;
    }
  };
  const heap: Handler = () => {
    // Until it is read or its reader is gone it takes as much memory as the heap.
    if (reading) return text(409, "a heap snapshot is being read already\n");
    const body = profiles.heap();
    reading = true;
    body.once("close", () => {
      reading = false;
    });
    return { status: 200, headers: attachment("fairlead-proxy.heapsnapshot"), body };
  };
  return {
    "/debug/pprof/": () => text(200, INDEX),
    "/debug/pprof/profile": profile,
    "/debug/pprof/heap": heap,
  };
}

function text(status: number, body: string): Answer {
  return { status, headers: PLAIN_TEXT, body };
}

/** Profiles by Node's own inspector, which is loaded when somebody asks. */
export const nodeProfiles: Profiles = {
  async cpu(seconds, stop) {
    const { Session } = await import("node:inspector/promises");
    const session = new Session();
    session.connect();
    try {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await sleep(systemClock, seconds * 1_000, stop);
      const { profile } = await session.post("Profiler.stop");
      return JSON.stringify(profile);
    } finally {
      session.disconnect();
    }
  },
  heap: getHeapSnapshot,
};
