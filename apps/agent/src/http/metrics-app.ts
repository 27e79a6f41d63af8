import type { Clock } from "@fairlead/base";
import type { SliMetrics } from "../metrics/sli-metrics.ts";
import { JSON_TYPE, PLAIN_TEXT } from "./answers.ts";
import { type App, type Handler, routes } from "./app.ts";
import { type Profiles, profileRoutes } from "./profiles.ts";
import { type RelayTable, relaysPage } from "./relays-page.ts";
import { reused } from "./reused.ts";
import { type Build, flagz, statusz } from "./zpages.ts";

export interface MetricsSources {
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
