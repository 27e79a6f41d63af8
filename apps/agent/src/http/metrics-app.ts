/** The metrics port: metrics, configuration, profiles of relays. */

import { Readable } from "node:stream";
import type { RelayTraffic } from "@fairlead/backend-userspace";
import { type Clock, nextTurn } from "@fairlead/base";
import type { AgentConfig } from "@fairlead/config";
import type { SliMetrics } from "../metrics/sync-metrics.ts";
import { type App, type Handler, JSON_TYPE, PLAIN_TEXT, routes } from "./app.ts";
import { type Profiles, profileRoutes } from "./profiles.ts";
import { type Build, flagz, statusz } from "./zpages.ts";

interface MetricsSources {
  /** The metrics in the text format, with their content type. */
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
    "/ownership/accept": () => ({ status: 410, headers: PLAIN_TEXT, body: ACCEPT_GONE }),
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

/** What a node's relays are asked for. */
export type RelayTable = Pick<RelayTraffic, "listening" | "connections">;

/**
 * Makes something on demand, at most once in `ms` milliseconds: who asks meanwhile gets what was made last, and who
 * asks while it is being made waits for the same. What failed is made again.
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

/** Consent of one node gave one ClusterIP two owners, and any local process could give it. */
const ACCEPT_GONE =
  "an agent takes no consent: fairlead ownership --accept CIDR writes it to the ConfigMap fairlead-networks, for all nodes\n";

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
