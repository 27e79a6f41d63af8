import { request as requestHttp } from "node:http";
import { request as requestHttps } from "node:https";
import { json } from "node:stream/consumers";
import { type RawObject, valueAt } from "@fairlead/base";
import { expect, test } from "vitest";
import { createApiSource, type SourceReport } from "../../src/index.ts";
import { Consumer } from "./fake-api.ts";

export interface SpecServer {
  readonly url: string;
  readonly token: string;
}

/** Services, their slices, the node and the cluster's CIDRs: each has a list of its own, and they come in any order. */
const RESOURCES = 4;
const TLS = { rejectUnauthorized: false };

export async function call(server: SpecServer, method: string, path: string, body?: unknown) {
  const sent = body === undefined ? "" : JSON.stringify(body);
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = {
    authorization: `Bearer ${server.token}`,
    "content-type": type,
    "content-length": Buffer.byteLength(sent),
  };
  const options = { method, headers };
  return new Promise<{ status: number; body: RawObject }>((resolve, reject) => {
    const url = `${server.url}${path}`;
    const outgoing = url.startsWith("https:") ? requestHttps(url, { ...options, ...TLS }) : requestHttp(url, options);
    outgoing.once("response", async (response) => {
      resolve({ status: response.statusCode ?? 0, body: Object(await json(response)) });
    });
    outgoing.once("error", reject);
    outgoing.end(sent);
  });
}

export async function create(server: SpecServer, path: string, object: unknown): Promise<RawObject> {
  const { status, body } = await call(server, "POST", path, object);
  if (status !== 201) throw new Error(`${path}: ${status} ${String(valueAt(body, "message"))}`);
  return body;
}

export function specService(name: string, spec: object = {}, metadata: object = {}) {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name, ...metadata },
    spec: { ports: [{ port: 80 }], ...spec },
  };
}

function follow({ url, token }: SpecServer, protobuf: boolean) {
  const to = { services: new Consumer(), slices: new Consumer(), cidrs: new Consumer() };
  const reports: SourceReport[] = [];
  const listed = Promise.withResolvers<void>();
  const onReport = (report: SourceReport) => {
    reports.push(report);
    if (reports.filter(({ type }) => type === "listed").length === RESOURCES) listed.resolve();
  };
  const stop = new AbortController();
  const headers = { authorization: `Bearer ${token}` };
  const source = createApiSource({
    connection: { server: url, credentials: async () => ({ headers, tls: TLS }) },
    nodeName: "node-a",
    userAgent: "fairlead-proxy/test",
    protobuf,
    onReport,
  });
  const subscriptions = {
    services: to.services.subscription,
    endpointSlices: to.slices.subscription,
    node: new Consumer().subscription,
    serviceCIDRs: to.cidrs.subscription,
  };
  const ended = source.run(subscriptions, stop.signal);
  const end = async () => {
    stop.abort();
    await ended;
  };
  return { ...to, reports, listed: listed.promise, end };
}

/**
 * What a watcher sees of any API server: these run against the light one and the real one, so that they stay alike. The
 * server has default/kubernetes and its ServiceCIDR.
 */
export function serverSpecs(open: () => SpecServer, namespace: string, protobuf: boolean): void {
  const services = `/api/v1/namespaces/${namespace}/services`;
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices`;
  const own = (consumer: Consumer) => consumer.keys().filter((key) => key.startsWith(`${namespace}/`));

  test("WatchList, changes, and the selection of services", async () => {
    const server = open();
    await create(server, services, specService("first"));
    await create(server, services, specService("headless", { clusterIP: "None" }));
    const labels = { "service.kubernetes.io/service-proxy-name": "x" };
    await create(server, services, specService("other", {}, { labels }));
    const { services: to, slices: ofSlices, cidrs, reports, listed, end } = follow(server, protobuf);
    await to.until(() => to.synced > 0);
    expect(own(to)).toEqual([`${namespace}/first`]);
    expect(to.keys()).toContain("default/kubernetes");
    await cidrs.until(() => cidrs.synced > 0);
    expect(cidrs.keys()).toEqual(["/kubernetes"]);
    const slice = { apiVersion: "discovery.k8s.io/v1", kind: "EndpointSlice", addressType: "IPv4", endpoints: [] };
    await create(server, slices, { ...slice, metadata: { name: "s" } });
    await ofSlices.until(() => ofSlices.state.has(`${namespace}/s`));
    await call(server, "DELETE", `${services}/first`);
    await create(server, services, specService("second"));
    await to.until(() => to.state.has(`${namespace}/second`));
    expect(to.state.has(`${namespace}/first`)).toBe(false);
    await listed;
    const others = reports.filter(({ type }) => type !== "encoding").map(({ type }) => type);
    expect(others).toEqual(Array(RESOURCES).fill("listed"));
    const encodings = reports.flatMap((report) => (report.type === "encoding" ? [report.encoding] : []));
    expect(encodings).toEqual(protobuf ? Array(RESOURCES).fill("protobuf") : []);
    await end();
  });

  test("a label that comes and goes takes a service out of the watch and back", async () => {
    const server = open();
    await create(server, services, specService("labeled"));
    const { services: to, end } = follow(server, protobuf);
    await to.until(() => to.state.has(`${namespace}/labeled`));
    const label = (value: string | null) => ({
      metadata: { labels: { "service.kubernetes.io/service-proxy-name": value } },
    });
    await call(server, "PATCH", `${services}/labeled`, label("x"));
    await to.until(() => !to.state.has(`${namespace}/labeled`));
    await call(server, "PATCH", `${services}/labeled`, label(null));
    await to.until(() => to.state.has(`${namespace}/labeled`));
    await end();
  });

  test("a patch of the status changes only the status, and is a change", async () => {
    const server = open();
    const created = await create(server, services, specService("lb", { type: "LoadBalancer" }));
    const { services: to, end } = follow(server, protobuf);
    await to.until(() => to.state.has(`${namespace}/lb`));
    const before = to.state.get(`${namespace}/lb`)?.version;
    const status = { loadBalancer: { ingress: [{ ip: "203.0.113.9" }] } };
    const patch = { spec: { externalName: "ignored.test" }, status };
    const { body } = await call(server, "PATCH", `${services}/lb/status`, patch);
    expect(body["status"]).toMatchObject({ loadBalancer: { ingress: [{ ip: "203.0.113.9" }] } });
    expect(body["spec"]).toEqual(created["spec"]);
    await to.until(() => to.state.get(`${namespace}/lb`)?.version !== before);
    await end();
  });

  test("what is not there, and what is there already", async () => {
    const server = open();
    await create(server, services, specService("twice"));
    expect((await call(server, "POST", services, specService("twice"))).status).toBe(409);
    expect((await call(server, "GET", `${services}/twice`)).status).toBe(200);
    for (const method of ["GET", "DELETE"])
      expect((await call(server, method, `${services}/missing`)).status).toBe(404);
    expect((await call(server, "PATCH", `${services}/missing`, {})).status).toBe(404);
  });

  test("chunks: every object once, in one version", async () => {
    const server = open();
    for (const name of ["c1", "c2", "c3"]) await create(server, services, specService(name));
    const seen: string[] = [];
    let next = "";
    do {
      const { body } = await call(
        server,
        "GET",
        `${services}?limit=2${next === "" ? "" : `&continue=${encodeURIComponent(next)}`}`,
      );
      const items = valueAt(body, "items");
      for (const item of Array.isArray(items) ? items : [])
        seen.push(String(valueAt(valueAt(item, "metadata"), "name")));
      next = String(valueAt(valueAt(body, "metadata"), "continue") ?? "");
    } while (next !== "");
    expect(seen).toEqual([...new Set(seen)]);
    expect(seen).toEqual(expect.arrayContaining(["c1", "c2", "c3"]));
  });
}
