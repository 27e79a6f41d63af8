import type { RequestObserver } from "@fairlead/watch";
import type { MetricFactory } from "./registry.ts";

/** client-go's. */
const BUCKETS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Requests to the API server, with the names, labels and buckets of client-go's metrics. */
export function restClientMetrics(make: MetricFactory): RequestObserver {
  const labels = ["verb", "host"] as const;
  const requests = make.counter(
    "rest_client_requests_total",
    "Requests to the API server by status code (<error> without an answer), method and host",
    ["code", "method", "host"] as const,
  );
  const duration = make.histogram(
    "rest_client_request_duration_seconds",
    "Seconds from a request to the response header, without watches",
    BUCKETS,
    labels,
  );
  const limited = make.histogram(
    "rest_client_rate_limiter_duration_seconds",
    "Seconds for which a request waited because of clientConnection's qps and burst",
    BUCKETS,
    labels,
  );
  return {
    answered({ method, host, code, watch, milliseconds }) {
      requests.inc({ code: code === undefined ? "<error>" : String(code), method, host });
      if (!watch) duration.observe({ verb: method, host }, milliseconds / 1000);
    },
    waited({ method, host, milliseconds }) {
      limited.observe({ verb: method, host }, milliseconds / 1000);
    },
  };
}
