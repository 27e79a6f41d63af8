import { json, plainText } from "./answers.ts";
import { type App, routes } from "./app.ts";
import { type Profiles, profileRoutes } from "./profiles.ts";

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
export function metricsApp(sources: MetricsSources): App {
  const { profiles } = sources;
  return routes({
    "/healthz": () => ({ status: 200, headers: plainText, body: "ok" }),
    "/proxyMode": () => ({ status: 200, headers: plainText, body: sources.proxyMode() }),
    "/configz": () => {
      const body = JSON.stringify({ "kubeproxy.config.k8s.io": sources.configuration() });
      return { status: 200, headers: json, body };
    },
    "/metrics": async () => {
      const { text, contentType } = await sources.metrics();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body: text };
    },
    "/ownership": () => {
      return { status: 200, headers: json, body: `${JSON.stringify(sources.ownership(), undefined, 2)}\n` };
    },
    ...(profiles === undefined ? {} : profileRoutes(profiles)),
  });
}
