import { addProcessMetrics, metricFactory } from "../metrics/registry.ts";
import type { SliceWriter } from "./controller.ts";

/** What `/metrics` of fairlead-slices has, in addition to the process's own. */
export function slicesMetrics(problems: () => ReadonlyMap<string, number>) {
  const make = metricFactory();
  addProcessMetrics(make.registry);
  const leader = make.gauge("fairlead_slices_leader", "1 while this process holds the lease and writes, otherwise 0");
  leader.set(0);
  const writes = make.counter("fairlead_slices_writes_total", "Writes of EndpointSlices by verb and result", [
    "verb",
    "result",
  ] as const);
  const counted = make.gauge("fairlead_slices_problems", "Services with a problem, by its reason", ["reason"] as const);
  const count = async <T>(verb: string, write: Promise<T>): Promise<T> => {
    try {
      const answer = await write;
      writes.inc({ verb, result: "success" });
      return answer;
    } catch (error) {
      writes.inc({ verb, result: "error" });
      throw error;
    }
  };
  return {
    leader,
    /** The same writes, counted. */
    counting: (writer: SliceWriter): SliceWriter => ({
      create: (object) => count("create", writer.create(object)),
      update: (object) => count("update", writer.update(object)),
      remove: (slice) => count("delete", writer.remove(slice)),
    }),
    async text() {
      counted.reset();
      for (const [reason, services] of problems()) counted.set({ reason }, services);
      return { text: await make.registry.metrics(), contentType: make.registry.contentType };
    },
  };
}

export type SlicesMetrics = ReturnType<typeof slicesMetrics>;
