import { createApiSource, createManifestsSource, type SourceReport, type Subscription } from "../../src/index.ts";

/** The process of peak-memory.ts: prints what it saw as JSON. */
const [from = "", until = "", encoding] = process.argv.slice(2);
const REPORTS: SourceReport[] = [];
const services = new Set<string>();
const stop = new AbortController();
let synced = false;
const subscription: Subscription<true> = {
  decode: () => true,
  onChange: (change) => {
    if (change.type === "synced") synced = true;
    else if (change.type === "upsert") services.add(change.key);
    else services.delete(change.key);
    if (synced && services.has(until)) stop.abort();
  },
};
const common = { nodeName: "node-a", onReport: (report: SourceReport) => void REPORTS.push(report) };
const source = from.startsWith("http")
  ? createApiSource({
      connection: { server: from, credentials: async () => ({ headers: {}, tls: {} }) },
      userAgent: "fairlead-proxy/0.0.0",
      protobuf: encoding === "protobuf",
      ...common,
    })
  : createManifestsSource({ path: from, ...common });
const before = process.resourceUsage().maxRSS;
await source.run({ services: subscription }, stop.signal);
const mebibytes = Math.round((process.resourceUsage().maxRSS - before) / 1024);
process.stdout.write(JSON.stringify({ services: [...services], reports: REPORTS, mebibytes }));
