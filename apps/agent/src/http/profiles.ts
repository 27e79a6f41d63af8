import type { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import { plainText } from "./answers.ts";
import type { Answer, Handler } from "./app.ts";

/** Profiles of this process, in the formats that Chrome's DevTools and editors open. */
export interface Profiles {
  /** A .cpuprofile of the next seconds. */
  cpu(seconds: number): Promise<string>;
  /** A .heapsnapshot; the process stands still while it is taken and needs as much memory again. */
  heap(): Readable;
}

const index = `/debug/pprof/profile?seconds=30  CPU profile (.cpuprofile)
/debug/pprof/heap                heap snapshot (.heapsnapshot)
`;
const longest = 300;
const attachment = (name: string) => ({
  "Content-Type": "application/json",
  "Content-Disposition": `attachment; filename="${name}"`,
  "X-Content-Type-Options": "nosniff",
});

/** What stands in for Go's /debug/pprof; only with enableProfiling. */
export function profileRoutes(profiles: Profiles): Readonly<Record<string, Handler>> {
  let busy = false;
  const profile: Handler = async (query) => {
    const seconds = Number(query.get("seconds") ?? "30");
    if (!(seconds > 0 && seconds <= longest)) return text(400, `seconds must be a number up to ${longest}\n`);
    if (busy) return text(409, "a CPU profile is being taken already\n");
    busy = true;
    try {
      return { status: 200, headers: attachment("fairlead-proxy.cpuprofile"), body: await profiles.cpu(seconds) };
    } finally {
      busy = false;
    }
  };
  return {
    "/debug/pprof/": () => text(200, index),
    "/debug/pprof/profile": profile,
    "/debug/pprof/heap": () => {
      return { status: 200, headers: attachment("fairlead-proxy.heapsnapshot"), body: profiles.heap() };
    },
  };
}

function text(status: number, body: string): Answer {
  return { status, headers: plainText, body };
}

/** Profiles by Node's own inspector, which is loaded when somebody asks. */
export const nodeProfiles: Profiles = {
  async cpu(seconds) {
    const { Session } = await import("node:inspector/promises");
    const session = new Session();
    session.connect();
    try {
      await session.post("Profiler.enable");
      await session.post("Profiler.start");
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
      const { profile } = await session.post("Profiler.stop");
      return JSON.stringify(profile);
    } finally {
      session.disconnect();
    }
  },
  heap: getHeapSnapshot,
};
