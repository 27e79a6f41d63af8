/** An API server in memory and what follows it, with clocks that the test sets. */

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { Server } from "node:http";
import { createServer, type ServerOptions } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { type Clock, objectAt, type RawObject, textAt, valueAt } from "@fairlead/base";
import { Followed } from "@fairlead/base/testing";
import { LightApiServer, tlsFolder } from "@fairlead/testkit/api-server";
import { testSignal } from "@fairlead/tooling/test-signal";
import { afterEach } from "vitest";
import { stringify } from "yaml";
import {
  type ApiSourceOptions,
  createApiSource,
  createManifestsSource,
  type ManifestsSourceOptions,
  type ObjectChange,
  type SourceReport,
  type Subscription,
  type Subscriptions,
} from "../../src/index.ts";

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

interface Running {
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

/** What a decoder in these tests keeps: a spec, or nothing for objects that are marked as bad. */
export interface Kept {
  readonly version: string;
  readonly spec: unknown;
}

/** A consumer that keeps what it was given and all the changes, and can be waited for. */
export class Consumer {
  readonly state = new Map<string, Kept>();
  readonly changes: ObjectChange<Kept>[] = [];
  synced = 0;
  /** Set to hold back: each change waits for it. */
  hold: Promise<void> | undefined;
  readonly #came = new Followed<string>(testSignal());

  readonly subscription: Subscription<Kept> = {
    decode: (raw) => {
      const spec = valueAt(raw, "spec");
      if (valueAt(spec, "throws") === true) throw new Error("undecodable");
      if (valueAt(spec, "type") === "bad") return undefined;
      return { version: textAt(objectAt(raw, "metadata"), "resourceVersion") ?? "", spec };
    },
    onChange: (change) => {
      this.#take(change);
      return this.hold;
    },
  };

  /** Resolves once `holds` is true after a change, or now. */
  async until(holds: () => boolean): Promise<void> {
    await this.#came.until(() => holds(), String(holds));
  }

  keys(): string[] {
    return [...this.state.keys()].sort();
  }

  #take(change: ObjectChange<Kept>): void {
    this.changes.push(change);
    if (change.type === "upsert") this.state.set(change.key, change.object);
    else if (change.type === "synced") this.synced++;
    else if (!this.state.delete(change.key)) throw new Error(`deleted what was never given: ${change.key}`);
    this.#came.add(`${change.type} ${"key" in change ? change.key : ""}`);
  }
}

export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "fairlead-watch-"));
  later(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** Follows `path` with a consumer for each resource until the test ends. */
export function followManifests(path: string, options: Partial<ManifestsSourceOptions> = {}) {
  const reports: SourceReport[] = [];
  const waiting: { holds: () => boolean; wake: () => void }[] = [];
  const onReport = (report: SourceReport) => {
    reports.push(report);
    for (const { holds, wake } of waiting) if (holds()) wake();
  };
  const to = { services: new Consumer(), slices: new Consumer(), node: new Consumer(), cidrs: new Consumer() };
  const source = createManifestsSource({ path, nodeName: "node-a", onReport, ...options });
  const controller = new AbortController();
  const ended = source.run(
    {
      services: to.services.subscription,
      endpointSlices: to.slices.subscription,
      node: to.node.subscription,
      serviceCIDRs: to.cidrs.subscription,
    },
    controller.signal,
  );
  later(async () => {
    controller.abort();
    await ended;
  });
  /** Resolves once such a report has come. */
  const reported = async (type: SourceReport["type"]) => {
    const holds = () => reports.some((report) => report.type === type);
    if (!holds()) await new Promise<void>((wake) => waiting.push({ holds, wake }));
    return reports.filter((report) => report.type === type);
  };
  const synced = () => to.cidrs.until(() => to.cidrs.synced > 0);
  return { ...to, reports, reported, synced };
}

/** Connecting, asking for a sign of life, silence, reports, watchdogs, and what the server doesn't have. */
const NEVER_OUT: ReadonlySet<number> = new Set([10_000, 15_000, 30_000, 60_000, 65_000, 70_000, 90_000, 600_000]);

/** Back-offs take no time; other timers never run out. */
function instantClock(): Clock {
  let now = 0;
  return {
    now: () => now,
    monotonic: () => now,
    after: (delay, run) => {
      if (NEVER_OUT.has(delay)) return () => {};
      now += delay;
      const immediate = setImmediate(run);
      return () => clearImmediate(immediate);
    },
  };
}

export const pem = (name: string) => readFile(join(tlsFolder, name), "utf8");
export const base64 = async (name: string) => Buffer.from(await pem(name)).toString("base64");

export async function kubeconfig(cluster: object, user: object, more: object = {}): Promise<string> {
  const file = join(await temporaryFolder(), "kubeconfig.conf");
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "default", cluster }],
    users: [{ name: "default", user }],
    contexts: [{ name: "default", context: { cluster: "default", user: "default" } }],
    "current-context": "default",
    ...more,
  };
  await writeFile(file, stringify(config));
  return file;
}

/** @returns its port; it is closed after the test */
export async function listening(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  later(async () => {
    server.closeAllConnections();
    server.close();
  });
  // The address of a listening TCP server is always an AddressInfo.
  return (server.address() as AddressInfo).port;
}

/** PEM key and certificate for 127.0.0.1, of ca.pem. */
export async function serverTls(): Promise<{ readonly key: string; readonly cert: string }> {
  return { key: await pem("server-key.pem"), cert: await pem("server.pem") };
}

export async function httpsServer(options: ServerOptions = {}): Promise<number> {
  return listening(
    createServer({ ...(await serverTls()), ...options }, ({ socket, headers }, response) => {
      const peer = (socket as TLSSocket).getPeerCertificate();
      response.end(JSON.stringify({ client: peer.subject?.CN, authorization: headers.authorization }));
    }),
  );
}
