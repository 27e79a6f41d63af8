import { VirtualClock } from "@fairlead/base/testing";
import { fail } from "@fairlead/testkit/api-server";
import { expect, test } from "vitest";
import { GatewayJob } from "../../src/controller/gateways/job.ts";
import { controllerForEach, LASTING_LEASE } from "../support/controller.ts";
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

const on = controllerForEach("--jobs=gateways", ...LASTING_LEASE);

function put(...objects: readonly Made[]): void {
  for (const { kind, raw } of objects) on.api.store.put(COLLECTIONS[kind], raw);
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
    on.api.store
      .list(COLLECTIONS.EndpointSlice)
      .filter(({ metadata }) => JSON.stringify(metadata).includes("gateways.fairlead.dev"))
      .flatMap(({ endpoints }) => (endpoints as { addresses: string[] }[]).map(({ addresses: [address] }) => address)),
  );
const programmed = () =>
  expect.poll(() => conditionsOf(on.api.store.get(COLLECTIONS.Gateway, "apps/gw")?.["status"])["Programmed"]);
async function settled(): Promise<void> {
  await mirrored().toEqual(["10.0.0.1"]);
  await programmed().toBe("False AddressNotAssigned");
  await expect.poll(() => on.api.store.get(COLLECTIONS.TCPRoute, "apps/r")?.["status"]).toBeDefined();
  await expect.poll(() => on.api.store.get(COLLECTIONS.GatewayClass, "/fairlead")?.["status"]).toBeDefined();
}
/** Writes of all but the lease and Events. */
const writes = () =>
  on.api.requests
    .filter(({ method, path }) => method !== "GET" && !path.includes("/leases") && !path.includes("/events"))
    .map(({ method, path }) => `${method} ${path.split("/v1/")[1]}`);

test("a Gateway gets its Service, the Service its slices, and all their statuses; a rolling update is one write of a slice for each change", async () => {
  put(...ALL);
  await on.start();
  await settled();
  const { metadata } = Object(on.api.store.get(COLLECTIONS.Service, "apps/gw-fairlead"));
  expect(metadata.annotations).toEqual({ "fairlead.dev/gateway-routes": "tcp=apps/r" });
  const before = writes().length;
  for (const address of ["10.0.0.2", "10.0.0.3", "10.0.0.4"]) {
    put(slice("web", [address]));
    await mirrored().toEqual([address]);
  }
  expect(writes().slice(before)).toEqual(
    Array(3).fill(expect.stringMatching(/^PUT namespaces\/apps\/endpointslices\//)),
  );
});

test("what changed while none ran is put right by the next one, and nothing else", async () => {
  put(...ALL);
  const first = await on.start();
  await settled();
  await first.end();
  const before = writes().length;
  put(slice("web", ["10.0.0.5"]), gateway("other", [listener("tcp", 9000)], { gatewayClassName: "theirs" }));
  await on.start();
  await mirrored().toEqual(["10.0.0.5"]);
  expect(writes().slice(before)).toHaveLength(1);
});

test("what the API server refuses is a condition and one Event on the Gateway, and others are served", async () => {
  on.api.answerInstead = ({ method, path }, response) => {
    if (method !== "POST" || !path.endsWith("/namespaces/apps/services")) return false;
    fail(response, 403, "Forbidden", "exceeded quota: services.loadbalancers");
    return true;
  };
  const free = { ...gateway("free", [listener("tcp", 9000)]).raw };
  put(...ALL);
  on.api.store.put(COLLECTIONS.Gateway, { ...free, metadata: { ...(free["metadata"] as object), namespace: "free" } });
  await on.start();
  await programmed().toBe("False Invalid");
  await expect.poll(() => on.api.store.get(COLLECTIONS.Service, "free/free-fairlead")).toBeDefined();
  await expect
    .poll(() => on.api.store.list(AT.events))
    .toMatchObject([
      {
        reason: "Invalid",
        message: "exceeded quota: services.loadbalancers",
        involvedObject: { apiVersion: "gateway.networking.k8s.io/v1", kind: "Gateway", namespace: "apps", name: "gw" },
      },
    ]);
});

test("a cluster without the Gateway API is one line for each of its resources, and nothing is written", async () => {
  on.api.answerInstead = ({ path }, response) => {
    if (!path.startsWith("/apis/gateway.networking.k8s.io")) return false;
    fail(response, 404, "NotFound", "the server could not find the requested resource");
    return true;
  };
  const { log } = await on.start();
  await expect.poll(() => log.messages("warn").filter((line) => line.includes("no such resource"))).toHaveLength(5);
  expect(writes()).toEqual([]);
});

test("what was to be tried again when a process lost the lead is done when it leads again", async () => {
  const [clock, { raw, key }] = [new VirtualClock(), gatewayClass()];
  const answers: number[] = [];
  let status = 503;
  const job = new GatewayJob({
    send: async ({ object }) => {
      answers.push(status);
      return { status, body: JSON.stringify(object ?? raw) };
    },
    clock,
    onProblem: () => {},
    onError: () => {},
    onSynced: () => {},
    onState: () => {},
  });
  const classes = job.subscriptions.find(({ resource }) => resource.kind === "GatewayClass");
  classes?.onChange({ type: "upsert", key, object: raw });
  const lead = async () => {
    const stop = new AbortController();
    const led = job.lead(stop.signal, () => true);
    await clock.advance(200);
    stop.abort();
    await led;
  };
  await lead();
  expect(new Set(answers)).toEqual(new Set([503]));
  await clock.advance(60_000);
  status = 200;
  await lead();
  expect(answers).toContain(200);
});
