import type { HealthCheck } from "@fairlead/core";
import { JSON_TYPE } from "../http/answers.ts";
import type { App } from "../http/app.ts";

/** What a service's health-check node port answers on every path, byte for byte as upstream formats it. */
export function serviceHealthApp(check: () => HealthCheck, proxyHealthy: () => boolean): App {
  return () => () => {
    const { namespace, name, localEndpoints } = check();
    const serviceProxyHealthy = proxyHealthy();
    const status = localEndpoints > 0 && serviceProxyHealthy ? 200 : 503;
    const body = JSON.stringify({ service: { namespace, name }, localEndpoints, serviceProxyHealthy }, undefined, "\t");
    return { status, headers: { ...JSON_TYPE, "X-Load-Balancing-Endpoint-Weight": String(localEndpoints) }, body };
  };
}
