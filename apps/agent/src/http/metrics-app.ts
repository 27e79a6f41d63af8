import type { Clock } from "../clock.ts";
import { json, plainText } from "./answers.ts";
import { type App, routes } from "./app.ts";
import { type Profiles, profileRoutes } from "./profiles.ts";
import { reused } from "./reused.ts";

export interface MetricsSources {
  /** The metrics in the text format, with their content type. */
  metrics(): Promise<{ readonly text: string; readonly contentType: string }>;
  /** The mode that really runs. */
  proxyMode(): string;
  /** The configuration in force, as KubeProxyConfiguration v1alpha1. */
  configuration(): unknown;
  /** Who serves each Service, and why. */
  ownership(): unknown;
  /** With enableProfiling alone. */
  readonly profiles?: Profiles;
}

/** Milliseconds for which an answer that costs something is given again. */
const freshness = 1_000;

/** What the metrics port answers, in upstream's words where upstream has it. */
export function metricsApp(sources: MetricsSources, clock: Pick<Clock, "monotonic">): App {
  const { profiles } = sources;
  // Bytes, so that many clients that read slowly wait for the same ones.
  const metrics = reused(clock, freshness, async () => {
    const { text, contentType } = await sources.metrics();
    return { contentType, body: Buffer.from(text) };
  });
  const ownership = reused(clock, freshness, () => {
    return Buffer.from(`${JSON.stringify(sources.ownership(), undefined, 2)}\n`);
  });
  return routes({
    "/healthz": () => ({ status: 200, headers: plainText, body: "ok" }),
    "/proxyMode": () => ({ status: 200, headers: plainText, body: sources.proxyMode() }),
    "/configz": () => {
      const body = JSON.stringify({ "kubeproxy.config.k8s.io": sources.configuration() });
      return { status: 200, headers: json, body };
    },
    "/metrics": async () => {
      const { body, contentType } = await metrics();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body };
    },
    "/ownership": async () => ({ status: 200, headers: json, body: await ownership() }),
    ...(profiles === undefined ? {} : profileRoutes(profiles)),
  });
}
