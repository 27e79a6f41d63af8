import { createApiSource, loadConnection } from "../src/index.ts";
import { objectsAt, valueAt } from "../src/raw.ts";

/**
 * Time, memory and longest block of the event loop for the first list of the server's EndpointSlices.
 *
 *   node --conditions=@fairlead/source bench/list.ts URL [watchList|list|chunks] [json|protobuf]
 *
 * with the URL that bench/serve.ts prints, or a real API server's (TOKEN in the environment). `list`: as with a server
 * that doesn't have WatchList; `chunks`: with one that can't give the list at once either
 * (then 0.8 s of the time are back-off).
 */

const [url = "", mode = "watchList", encoding = "json"] = process.argv.slice(2);
const { TOKEN: token = "" } = process.env;
const TLS = { rejectUnauthorized: false };
const headers: Record<string, string> = token === "" ? {} : { authorization: `Bearer ${token}` };
const { server } = await loadConnection({ master: url });
const connection = { server, credentials: async () => ({ headers, tls: TLS }) };
const { httpTransport } = await import("../src/api/http-transport.ts");
const { systemClock } = await import("@fairlead/base");
const real = httpTransport(connection, "fairlead-bench/0", systemClock);

const stop = new AbortController();
const before = process.memoryUsage().rss;
const longestTurn = measureTurns();
const began = performance.now();
let kept = 0;
const source = createApiSource({
  connection,
  nodeName: "node-a",
  userAgent: "fairlead-bench/0",
  protobuf: encoding === "protobuf",
  transport: (request) => (refuses(request.path) ? Promise.resolve(refusal) : real(request)),
  random: () => 0,
});
const refusal = { status: 422, header: () => undefined, body: (async function* () {})() };
function refuses(path: string): boolean {
  if (path.includes("sendInitialEvents")) return mode !== "watchList";
  return mode === "chunks" && !path.includes("limit=") && !path.includes("watch=");
}
await source.run(
  {
    endpointSlices: {
      decode: (raw) => objectsAt(raw, "endpoints").map((endpoint) => String(valueAt(endpoint, "addresses"))),
      onChange: (change) => {
        if (change.type === "upsert") kept += change.object.length;
        if (change.type === "synced") stop.abort();
      },
    },
  },
  stop.signal,
);
const mebibytes = (bytes: number) => `${Math.round(bytes / 2 ** 20)} MiB`;
console.log({
  mode,
  encoding,
  endpoints: kept,
  seconds: Number(((performance.now() - began) / 1000).toFixed(2)),
  "CPU seconds": Number(((process.cpuUsage().user + process.cpuUsage().system) / 1e6).toFixed(2)),
  "resident before": mebibytes(before),
  "resident at most": mebibytes(process.resourceUsage().maxRSS * 1024),
  "longest turn of the event loop, its CPU time": `${longestTurn()} ms`,
});

/** CPU time rather than the clock's, since other processes on a busy machine are not our doing. */
function measureTurns(): () => number {
  let longest = 0;
  let last = process.threadCpuUsage();
  const measure = () => {
    const now = process.threadCpuUsage();
    longest = Math.max(longest, now.user + now.system - last.user - last.system);
    last = now;
    timer = setImmediate(measure);
  };
  let timer = setImmediate(measure);
  return () => {
    clearImmediate(timer);
    return Math.round(longest / 1000);
  };
}
