import { fail, LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startController } from "../support/controller.ts";
import {
  backend,
  COLLECTIONS,
  conditionsOf,
  gateway,
  gatewayClass,
  listener,
  type Made,
  route,
  slice,
} from "../support/gateways.ts";
import { AT } from "../support/slices.ts";

let api: LightApiServer;
let server: string;
const running: Awaited<ReturnType<typeof startController>>[] = [];

beforeEach(async () => {
  api = new LightApiServer();
  server = await api.start();
});
afterEach(async () => {
  await Promise.all(running.splice(0).map(({ end }) => end()));
  await api.stop();
});

/** A busy machine renews in time all the same; one that ends releases its lease. */
const QUICK = [
  "--leader-elect-lease-duration=2h",
  "--leader-elect-renew-deadline=1h",
  "--leader-elect-retry-period=100ms",
];

async function start() {
  const one = await startController(server, "--jobs=gateways", ...QUICK);
  running.push(one);
  return one;
}

function put(...objects: readonly Made[]): void {
  for (const { kind, raw } of objects) api.store.put(COLLECTIONS[kind], raw);
}

/** A Gateway with a route to a backend, and their addresses as the slices of the Gateway's Service have them. */
const ALL = [
  gatewayClass(),
  gateway("gw", [listener("tcp", 9000)]),
  route("r"),
  backend("web"),
  slice("web", ["10.0.0.1"]),
];
const mirrored = () =>
  expect.poll(() =>
    api.store
      .list(COLLECTIONS.EndpointSlice)
      .filter(({ metadata }) => JSON.stringify(metadata).includes("gateways.fairlead.dev"))
      .flatMap(({ endpoints }) => (endpoints as { addresses: string[] }[]).map(({ addresses: [address] }) => address)),
  );
const programmed = () =>
  expect.poll(() => conditionsOf(api.store.get(COLLECTIONS.Gateway, "apps/gw")?.["status"])["Programmed"]);
async function settled(): Promise<void> {
  await mirrored().toEqual(["10.0.0.1"]);
  await programmed().toBe("False AddressNotAssigned");
  await expect.poll(() => api.store.get(COLLECTIONS.TCPRoute, "apps/r")?.["status"]).toBeDefined();
  await expect.poll(() => api.store.get(COLLECTIONS.GatewayClass, "/fairlead")?.["status"]).toBeDefined();
}
/** Writes of all but the lease and Events. */
const writes = () =>
  api.requests
    .filter(({ method, path }) => method !== "GET" && !path.includes("/leases") && !path.includes("/events"))
    .map(({ method, path }) => `${method} ${path.split("/v1/")[1]}`);

test("a Gateway gets its Service, the Service its slices, and all their statuses; a rolling update is one write of a slice for each change", async () => {
  put(...ALL);
  await start();
  await settled();
  const before = writes().length;
  for (const address of ["10.0.0.2", "10.0.0.3", "10.0.0.4"]) {
    put(slice("web", [address]));
    await mirrored().toEqual([address]);
  }
  expect(writes().slice(before)).toEqual(
    Array(3).fill(expect.stringMatching(/^PUT namespaces\/apps\/endpointslices\//)),
  );
});

test("another process goes on where the first one ended, and one that starts anew writes nothing", async () => {
  put(...ALL);
  const first = await start();
  await settled();
  await start();
  await first.end();
  const before = writes().length;
  put(slice("web", ["10.0.0.2"]));
  await mirrored().toEqual(["10.0.0.2"]);
  expect(writes().slice(before)).toHaveLength(1);
});

test("what changed while none ran is put right by the next one, and nothing else", async () => {
  put(...ALL);
  const first = await start();
  await settled();
  await first.end();
  const before = writes().length;
  put(slice("web", ["10.0.0.5"]), gateway("other", [listener("tcp", 9000)], { gatewayClassName: "theirs" }));
  await start();
  await mirrored().toEqual(["10.0.0.5"]);
  expect(writes().slice(before)).toHaveLength(1);
});

test("an address of a load balancer is the Gateway's", async () => {
  put(...ALL);
  await start();
  await programmed().toBe("False AddressNotAssigned");
  const service = api.store.get(COLLECTIONS.Service, "apps/gw-fairlead");
  api.store.put(COLLECTIONS.Service, { ...service, status: { loadBalancer: { ingress: [{ ip: "192.0.2.1" }] } } });
  await programmed().toBe("True Programmed");
});

test("what the API server refuses is a condition and one Event on the Gateway, and others are served", async () => {
  api.answerInstead = ({ method, path }, response) => {
    if (method !== "POST" || !path.endsWith("/namespaces/apps/services")) return false;
    fail(response, 403, "Forbidden", "exceeded quota: services.loadbalancers");
    return true;
  };
  const free = { ...gateway("free", [listener("tcp", 9000)]).raw };
  put(...ALL);
  api.store.put(COLLECTIONS.Gateway, { ...free, metadata: { ...(free["metadata"] as object), namespace: "free" } });
  await start();
  await programmed().toBe("False Invalid");
  await expect.poll(() => api.store.get(COLLECTIONS.Service, "free/free-fairlead")).toBeDefined();
  await expect
    .poll(() => api.store.list(AT.events))
    .toMatchObject([
      {
        reason: "Invalid",
        message: "exceeded quota: services.loadbalancers",
        involvedObject: { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", namespace: "apps", name: "gw" },
      },
    ]);
});

test("a cluster without the Gateway API is one line for each of its resources, and nothing is written", async () => {
  api.answerInstead = ({ path }, response) => {
    if (!path.startsWith("/apis/gateway.networking.k8s.io")) return false;
    fail(response, 404, "NotFound", "the server could not find the requested resource");
    return true;
  };
  const { log } = await start();
  await expect.poll(() => log.messages("warn").filter((line) => line.includes("no such resource"))).toHaveLength(5);
  expect(writes()).toEqual([]);
});
