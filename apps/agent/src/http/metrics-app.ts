/** The metrics port: metrics, configuration, profiles of relays. */

import { Readable } from "node:stream";
import type { RelayTraffic } from "@fairlead/backend-userspace";
import { type Clock, nextTurn } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { SliMetrics } from "../metrics/sync-metrics.ts";
import { type App, type Handler, JSON_TYPE, negotiate, PLAIN_TEXT, routes } from "./app.ts";
import { type Profiles, profileRoutes } from "./profiles.ts";

interface MetricsSources {
  metrics(): Promise<{ readonly text: string; readonly contentType: string }>;
  /** The mode that really runs. */
  proxyMode(): string;
  /** The configuration in force: what /configz answers. */
  configuration(): object;
  /** Who serves each Service, and why. */
  ownership(): unknown;
  /** What this process itself relays; absent: nothing. */
  readonly relays?: RelayTable | undefined;
  /** Kubernetes' SLIs of this port's own health check. */
  readonly slis: SliMetrics;
  /** What runs here; absent: no /statusz. */
  readonly build?: Build | undefined;
  /** The command line with its defaults; absent: no /flagz. */
  readonly flags?: Readonly<Record<string, string>> | undefined;
  /** Only with enableProfiling. */
  readonly profiles?: Profiles;
}

/** Milliseconds for which an answer that costs something is given again. */
const FRESH_MS = 1_000;

/** What the metrics port answers, in upstream's words where upstream has it. */
export function metricsApp(sources: MetricsSources, clock: Pick<Clock, "now" | "monotonic">): App {
  const { profiles, slis, build, flags } = sources;
  // Bytes, so that many clients that read slowly wait for the same ones.
  const metrics = reused(clock, FRESH_MS, async () => {
    const { text, contentType } = await sources.metrics();
    return { contentType, body: Buffer.from(text) };
  });
  const ownership = reused(clock, FRESH_MS, () => {
    return Buffer.from(`${JSON.stringify(sources.ownership(), undefined, 2)}\n`);
  });
  const handlers: Record<string, Handler> = {
    ...pingRoutes(slis),
    "/proxyMode": () => ({ status: 200, headers: PLAIN_TEXT, body: sources.proxyMode() }),
    "/configz": () => ({ status: 200, headers: JSON_TYPE, body: JSON.stringify(sources.configuration()) }),
    "/metrics": async () => {
      const { body, contentType } = await metrics();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body };
    },
    "/ownership": async () => ({ status: 200, headers: JSON_TYPE, body: await ownership() }),
    "/relays": relaysPage(sources.relays),
    ...(profiles === undefined ? {} : profileRoutes(profiles)),
  };
  if (flags !== undefined) handlers["/flagz"] = flagz(flags);
  if (build !== undefined) handlers["/statusz"] = statusz(build, () => clock.now(), Object.keys(handlers));
  return routes(handlers);
}

type Documents = Pick<AgentConfig, "kubeProxyConfiguration" | "fairleadConfiguration" | "commandLine">;

/** The configuration as kube-proxy serves it, by upstream's key, and alongside that what only Fairlead has. */
export function configz({ kubeProxyConfiguration, fairleadConfiguration, commandLine }: Documents): object {
  return {
    "kubeproxy.config.k8s.io": kubeProxyConfiguration,
    "fairlead.dev": fairleadConfiguration,
    commandLine,
  };
}

export type RelayTable = Pick<RelayTraffic, "listening" | "connections">;

/**
 * Makes something on demand, at most once in `ms` milliseconds: a caller in between gets what was made last, and one
 * that comes while it is being made waits for the same. What failed is made again.
 */
export function reused<T>(clock: Pick<Clock, "monotonic">, ms: number, make: () => T | Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  let until = 0;
  return () => {
    if (made !== undefined && clock.monotonic() < until) return made;
    const current = (async () => make())();
    made = current;
    until = Number.POSITIVE_INFINITY;
    const keep = (milliseconds: number) => {
      if (made === current) until = clock.monotonic() + milliseconds;
    };
    current.then(
      () => keep(ms),
      () => keep(0),
    );
    return current;
  };
}

/** The port's own health, with Go's handler's forms: it answers, and that is all that it checks. */
function pingRoutes(slis: SliMetrics): Record<string, Handler> {
  const ok = { status: 200, headers: PLAIN_TEXT, body: "ok" };
  return {
    "/healthz": ({ query }) => {
      slis.succeeded();
      return query.has("verbose") ? { ...ok, body: "[+]ping ok\nhealthz check passed\n" } : ok;
    },
    "/healthz/ping": () => ok,
    "/metrics/slis": async ({ method }) => {
      if (method === "DELETE") {
        slis.reset();
        return { status: 200, headers: PLAIN_TEXT, body: "metrics reset\n" };
      }
      const { text, contentType } = await slis.text();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body: text };
    },
  };
}

/** Lines that are made in one turn of the event loop, some tenths of a millisecond. */
const AT_ONCE = 200;

/**
 * Where relays listen and which client and endpoint each connects, JSON by lines: in userspace mode no other program
 * knows the endpoint of a connection. For those on the node only, as it names clients. Nothing is kept for it: it is
 * read from the sockets on request.
 *
 * @param table absent: nothing is relayed, and there are no lines
 */
function relaysPage(table: RelayTable | undefined): Handler {
  return ({ local }) => {
    if (!local) return { status: 403, headers: PLAIN_TEXT, body: "only from this node: the loopback address\n" };
    const headers = { "Content-Type": "application/jsonl", "X-Content-Type-Options": "nosniff" };
    return { status: 200, headers, body: Readable.from(inTurns(table === undefined ? [] : lines(table))) };
  };
}

function* lines(table: RelayTable): Generator<string, void, void> {
  for (const relay of table.listening) yield `${JSON.stringify({ listening: relay })}\n`;
  for (const connection of table.connections()) yield `${JSON.stringify({ connection })}\n`;
}

async function* inTurns(all: Iterable<string>): AsyncGenerator<Buffer, void, void> {
  let piece: string[] = [];
  for (const line of all) {
    if (piece.push(line) < AT_ONCE) continue;
    yield Buffer.from(piece.join(""));
    piece = [];
    await nextTurn();
  }
  if (piece.length > 0) yield Buffer.from(piece.join(""));
}

/** What runs here, for /statusz. */
interface Build {
  /** Fairlead's version, without a v. */
  readonly version: string;
  /** The release of kube-proxy whose flags, fields and metrics it has: `1.37`. */
  readonly follows: string;
  /** When the process began, milliseconds since the epoch. */
  readonly startedAt: number;
}

const VERSIONS = ["v1beta1", "v1alpha1"];
const ACCEPTED = "application/json, application/yaml, text/plain";

/** /statusz (KEP-4827): what runs since when, and where else to look. */
function statusz(build: Build, now: () => number, paths: readonly string[]): Handler {
  const folders = [...new Set(paths.map((path) => `/${path.split("/")[1]}`))].sort();
  const uptime = () => Math.max(0, Math.trunc((now() - build.startedAt) / 1000));
  return zpage({
    kind: "Statusz",
    fields: () => ({
      startTime: `${new Date(build.startedAt).toISOString().slice(0, 19)}Z`,
      uptimeSeconds: uptime(),
      goVersion: "",
      binaryVersion: build.version,
      emulationVersion: build.follows,
      paths: folders,
    }),
    lines: () => [
      "",
      `Started: ${new Date(build.startedAt).toUTCString()}`,
      `Up: ${duration(uptime())}`,
      `Node version: ${process.version}`,
      `Binary version: ${build.version}`,
      `Emulation version: ${build.follows}`,
      `Paths: ${folders.join(" ")}`,
    ],
  });
}

/** /flagz (KEP-4828): the command line with its defaults. */
function flagz(flags: Readonly<Record<string, string>>): Handler {
  const sorted = Object.entries(flags).sort(([a], [b]) => (a < b ? -1 : 1));
  return zpage({
    kind: "Flagz",
    fields: () => ({ flags: Object.fromEntries(sorted) }),
    lines: () => sorted.map(([name, value]) => `${name}=${value}`),
  });
}

interface Page {
  readonly kind: "Statusz" | "Flagz";
  readonly fields: () => object;
  readonly lines: () => readonly string[];
}

function zpage({ kind, fields, lines }: Page): Handler {
  const page = kind.toLowerCase();
  const head = `
kube-proxy ${page}
Warning: This endpoint is not meant to be machine parseable, has no formatting compatibility guarantees and is for debugging purposes only.
`;
  return ({ accept }) => {
    const chosen = negotiate(accept, { group: "config.k8s.io", kind, versions: VERSIONS });
    if (chosen === undefined) return notAcceptable;
    if (chosen.kind === "text") return { status: 200, headers: PLAIN_TEXT, body: `${head}${lines().join("\n")}\n` };
    const { mediaType, version } = chosen;
    const object = { kind, apiVersion: `config.k8s.io/${version}`, metadata: { name: "kube-proxy" }, ...fields() };
    const warning = `299 - "This version of the ${page} endpoint is deprecated. Please use a newer version."`;
    const headers = { "Content-Type": mediaType, ...(version === "v1alpha1" && { Warning: warning }) };
    // JSON is YAML.
    return { status: 200, headers, body: `${JSON.stringify(object)}\n` };
  };
}

const notAcceptable = {
  status: 406,
  headers: JSON_TYPE,
  body: `${JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `only the following media types are accepted: ${ACCEPTED}`,
    reason: "NotAcceptable",
    code: 406,
  })}\n`,
};

function duration(seconds: number): string {
  const two = (value: number) => String(value).padStart(2, "0");
  return `${Math.trunc(seconds / 3600)} hr ${two(Math.trunc(seconds / 60) % 60)} min ${two(seconds % 60)} sec`;
}
