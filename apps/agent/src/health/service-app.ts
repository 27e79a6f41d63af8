import type { HealthCheck } from "@fairlead/core";
import { Hono } from "hono";
import { json } from "../http/answers.ts";

/** What a service's health-check node port answers on every path, byte for byte as upstream formats it. */
export function serviceHealthApp(check: () => HealthCheck, proxyHealthy: () => boolean): Hono {
  const app = new Hono();
  app.all("*", (c) => {
    const { namespace, name, localEndpoints } = check();
    const serviceProxyHealthy = proxyHealthy();
    const code = localEndpoints > 0 && serviceProxyHealthy ? 200 : 503;
    const text = JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, undefined, "\t");
    return c.body(text, code, { ...json, "X-Load-Balancing-Endpoint-Weight": String(localEndpoints) });
  });
  return app;
}
