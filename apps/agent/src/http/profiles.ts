import { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import type { Hono } from "hono";
import { plainText } from "./answers.ts";

/** Profiles of this process, in the formats that Chrome's DevTools and editors open. */
export interface Profiles {
  /** A .cpuprofile of the next seconds. */
  cpu(seconds: number): Promise<string>;
  /** A .heapsnapshot; the process stands still while it is taken and needs as much memory again. */
  heap(): ReadableStream;
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
export function addProfiles(app: Hono, profiles: Profiles): void {
  let busy = false;
  app.get("/debug/pprof/", (c) => c.body(index, 200, plainText));
  app.get("/debug/pprof/profile", async (c) => {
    const seconds = Number(c.req.query("seconds") ?? "30");
    if (!(seconds > 0 && seconds <= longest)) {
      return c.body(`seconds must be a number up to ${longest}\n`, 400, plainText);
    }
    if (busy) return c.body("a CPU profile is being taken already\n", 409, plainText);
    busy = true;
    try {
      return c.body(await profiles.cpu(seconds), 200, attachment("fairlead-proxy.cpuprofile"));
    } finally {
      busy = false;
    }
  });
  app.get("/debug/pprof/heap", (c) => c.body(profiles.heap(), 200, attachment("fairlead-proxy.heapsnapshot")));
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
  heap: () => Readable.toWeb(getHeapSnapshot()),
};
