import type { Session } from "node:inspector/promises";
import { sleep, systemClock } from "@fairlead/base";
import { type Answer, type Handler, PLAIN_TEXT } from "./app.ts";

/** Profiles of this process, in the formats that Chrome's DevTools and editors open. Neither has contents of memory. */
export interface Profiles {
  /** A .cpuprofile of the next seconds, or of those until `stop` aborts. */
  cpu(seconds: number, stop: AbortSignal): Promise<string>;
  /** A .heapprofile: a sample of what is allocated, by the functions that allocated it. */
  heap(): Promise<string>;
}

const INDEX = `/debug/pprof/profile?seconds=30  CPU profile (.cpuprofile)
/debug/pprof/heap                sampled allocation profile (.heapprofile)
`;
const LONGEST_SECONDS = 300;
const attachment = (name: string) => ({
  "Content-Type": "application/json",
  "Content-Disposition": `attachment; filename="${name}"`,
  "X-Content-Type-Options": "nosniff",
});

/** What stands in for Go's /debug/pprof; only with enableProfiling. */
export function profileRoutes(profiles: Profiles): Readonly<Record<string, Handler>> {
  let busy = false;
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
  const heap: Handler = async () => ({
    status: 200,
    headers: attachment("fairlead-proxy.heapprofile"),
    body: await profiles.heap(),
  });
  return {
    "/debug/pprof/": () => text(200, INDEX),
    "/debug/pprof/profile": profile,
    "/debug/pprof/heap": heap,
  };
}

function text(status: number, body: string): Answer {
  return { status, headers: PLAIN_TEXT, body };
}

/** Bytes between two samples of what is allocated; Go's profiles have one in 512 kB, of larger heaps. */
const SAMPLING_BYTES = 131_072;

/** Profiles by Node's own inspector. From now on allocations are sampled, as a Go process does from its start. */
export function nodeProfiles(): Profiles {
  const sampling = startSampling();
  // Reported to the caller.
  sampling.catch(() => {});
  return {
    async cpu(seconds, stop) {
      const session = await connect();
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
    async heap() {
      const { profile } = await (await sampling).post("HeapProfiler.getSamplingProfile");
      return JSON.stringify(profile);
    },
  };
}

async function startSampling(): Promise<Session> {
  const session = await connect();
  await session.post("HeapProfiler.startSampling", { samplingInterval: SAMPLING_BYTES });
  return session;
}

/** The inspector is loaded only here: without enableProfiling nothing needs it. */
async function connect(): Promise<Session> {
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  return session;
}
