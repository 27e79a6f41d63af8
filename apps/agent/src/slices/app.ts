import { PLAIN_TEXT } from "../http/answers.ts";
import { type App, routes } from "../http/app.ts";
import type { SlicesMetrics } from "./metrics.ts";

export interface SlicesAppSources {
  readonly metrics: Pick<SlicesMetrics, "text">;
  /** All lists that are needed are in. A replica that waits for the lease is ready as well. */
  readonly ready: () => boolean;
}

/** What the port of fairlead-slices answers. */
export function slicesApp({ metrics, ready }: SlicesAppSources): App {
  const ok = { status: 200, headers: PLAIN_TEXT, body: "ok" };
  return routes({
    "/healthz": () => ok,
    "/livez": () => ok,
    "/readyz": () => (ready() ? ok : { status: 503, headers: PLAIN_TEXT, body: "waiting for the first lists\n" }),
    "/metrics": async () => {
      const { text, contentType } = await metrics.text();
      return { status: 200, headers: { "Content-Type": contentType, "X-Content-Type-Options": "nosniff" }, body: text };
    },
  });
}
