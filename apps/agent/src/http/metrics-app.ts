import { Hono } from "hono";
import { json, plainText } from "./answers.ts";
import { addProfiles, type Profiles } from "./profiles.ts";

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

/** What the metrics port answers, in upstream's words where upstream has it. */
export function metricsApp(sources: MetricsSources): Hono {
  const app = new Hono();
  app.get("/healthz", (c) => c.body("ok", 200, plainText));
  app.get("/proxyMode", (c) => c.body(sources.proxyMode(), 200, plainText));
  app.get("/configz", (c) => c.body(JSON.stringify({ "kubeproxy.config.k8s.io": sources.configuration() }), 200, json));
  app.get("/metrics", async (c) => {
    const { text, contentType } = await sources.metrics();
    return c.body(text, 200, { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" });
  });
  app.get("/ownership", (c) => c.body(`${JSON.stringify(sources.ownership(), undefined, 2)}\n`, 200, json));
  if (sources.profiles !== undefined) addProfiles(app, sources.profiles);
  return app;
}
