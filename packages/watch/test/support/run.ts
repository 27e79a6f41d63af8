import type { RawObject } from "@fairlead/base";
import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach } from "vitest";
import { type ApiSourceOptions, createApiSource, type SourceReport, type Subscriptions } from "../../src/index.ts";
import { instantClock } from "./clocks.ts";
import { Consumer } from "./consumer.ts";

export const SERVICES_PATH = "/api/v1/services";
export const SLICES_PATH = "/apis/discovery.k8s.io/v1/endpointslices";
export const NODES_PATH = "/api/v1/nodes";
export const CIDRS_PATH = "/apis/networking.k8s.io/v1/servicecidrs";

const CLEANUPS: (() => Promise<void>)[] = [];

/** Ends what the test has begun, also when it failed. */
export function endAfterEach(): void {
  afterEach(async () => {
    for (const cleanup of CLEANUPS.splice(0).reverse()) await cleanup();
  });
}

export function later(cleanup: () => Promise<void>): void {
  CLEANUPS.push(cleanup);
}

export async function fakeApi(
  ...tls: ConstructorParameters<typeof LightApiServer>
): Promise<{ api: LightApiServer; server: string }> {
  const api = new LightApiServer(...tls);
  const server = await api.start();
  later(() => api.stop());
  return { api, server };
}

export function service(
  name: string,
  spec: Record<string, unknown> = {},
  labels: Record<string, string> = {},
): RawObject {
  return { metadata: { name, namespace: "default", labels }, spec: { clusterIP: "10.96.0.9", ...spec } };
}

export interface Running {
  readonly reports: SourceReport[];
  readonly stop: () => Promise<void>;
  readonly ended: Promise<void>;
}

/** Runs an API source until the test ends. Waits take no time unless a clock is given. */
export function run<S, E, N, C>(
  server: string,
  to: Subscriptions<S, E, N, C>,
  options: Partial<ApiSourceOptions> = {},
): Running {
  const reports: SourceReport[] = [];
  const source = createApiSource({
    connection: { server, credentials: async () => ({ headers: {}, tls: {} }) },
    nodeName: "node-a",
    userAgent: "fairlead-proxy/0.0.0",
    onReport: (report) => reports.push(report),
    clock: instantClock(),
    // Without any jitter the longest back-off would look like another timer to the instant clock.
    random: () => (options.clock === undefined ? 0.0001 : 0),
    ...options,
  });
  const controller = new AbortController();
  const ended = source.run(to, controller.signal);
  ended.catch(() => {});
  const stop = async () => {
    controller.abort();
    await ended.catch(() => {});
  };
  later(stop);
  return { reports, stop, ended };
}

/** The usual set-up: an API server, a source that follows its Services, and a consumer that has the first list. */
export async function following(
  prepare: (api: LightApiServer) => void = () => {},
  options: Partial<ApiSourceOptions> = {},
) {
  const { api, server } = await fakeApi();
  prepare(api);
  const consumer = new Consumer();
  const running = run(server, { services: consumer.subscription }, options);
  await consumer.until(() => consumer.synced > 0);
  return { api, server, consumer, ...running };
}
