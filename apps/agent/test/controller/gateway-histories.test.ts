import { createHash } from "node:crypto";
import type { RawObject } from "@fairlead/base";
import fc from "fast-check";
import { expect, test } from "vitest";
import { serviceName } from "../../src/controller/gateways/service.ts";
import {
  backend,
  GatewayCluster,
  gateway,
  gatewayClass,
  grant,
  listener,
  type Made,
  namespace,
  route,
  slice,
} from "../support/gateways.ts";

/** Few names, so that objects meet. */
const some = <T>(...values: readonly T[]) => fc.constantFrom(...values);
const names = some("a", "b");
const spaces = some("apps", "data");

const listeners = fc.uniqueArray(
  fc.record({
    name: some("x", "y", "z"),
    port: some(80, 81),
    protocol: some("TCP", "UDP", "HTTP"),
    from: some("Same", "All", "Selector"),
  }),
  { minLength: 1, maxLength: 3, selector: ({ name }) => name },
);
const aGateway = fc.record({ name: names, class: some("fairlead", "theirs", "missing"), listeners }).map((one) =>
  gateway(
    one.name,
    one.listeners.map(({ name, port, protocol, from }) =>
      listener(name, port, protocol, { namespaces: { from, selector: { matchLabels: { team: "a" } } } }),
    ),
    { gatewayClassName: one.class },
  ),
);
const reference = fc.record({
  name: some("web", "db", "gone", "a-fairlead"),
  namespace: spaces,
  port: some(80, 81),
  weight: some(0, 1, 9, 1_000_000),
});
const aRoute = fc
  .record({
    name: names,
    namespace: spaces,
    kind: some("TCPRoute" as const, "UDPRoute" as const),
    created: some("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"),
    parent: names,
    section: fc.option(some("x", "y"), { nil: undefined }),
    backends: fc.array(reference, { minLength: 1, maxLength: 3 }),
  })
  .map(({ name, parent, section, ...fields }) => {
    const ref = { name: parent, namespace: "apps", ...(section !== undefined && { sectionName: section }) };
    return route(name, { ...fields, parents: [ref] });
  });
const aBackend = fc
  .record({ name: some("web", "db"), namespace: spaces, protocol: some("TCP", "UDP") })
  .map((one) => backend(one.name, { ports: [{ name: "tcp", port: 80, protocol: one.protocol }] }, one.namespace));
const aSlice = fc
  .record({ service: some("web", "db"), namespace: spaces, at: some(1, 2), addresses: fc.subarray([1, 2, 3]) })
  .map(({ service, namespace: of, at, addresses }) => {
    const network = `${service === "web" ? 1 : 2}.${of === "apps" ? 1 : 2}`;
    return slice(
      service,
      addresses.map((one) => `10.${network}.${at * 10 + one}`),
      `${service}-${at}`,
      { namespace: of },
    );
  });
const aGrant = fc.record({ of: spaces, from: spaces }).map(({ of, from }) => grant(of, { namespace: from }));
const aNamespace = fc.record({ name: spaces, team: names }).map(({ name, team }) => namespace(name, { team }));
const anObject = fc.oneof(aGateway, aRoute, aBackend, aSlice, aGrant, aNamespace);

type Step = { readonly put: Made } | { readonly delete: Made } | "settle" | "catch up";
const aStep: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: anObject.map((put) => ({ put })) },
  { weight: 2, arbitrary: anObject.map((one) => ({ delete: one })) },
  { weight: 2, arbitrary: some<Step>("settle", "catch up") },
);

let generation = 1;
const CLASSES = [gatewayClass(), gatewayClass("theirs", "example.org/theirs")];

async function played(steps: readonly Step[], lags: boolean): Promise<GatewayCluster> {
  const cluster = new GatewayCluster(...CLASSES);
  cluster.lags = lags;
  for (const step of steps) {
    if (step === "settle") await cluster.settle();
    else if (step === "catch up") cluster.catchUp();
    else if ("put" in step) {
      generation += 1;
      const { raw, ...rest } = step.put;
      cluster.put({ ...rest, raw: { ...raw, metadata: { ...(raw["metadata"] as RawObject), generation } } });
    } else cluster.delete(step.delete.kind, step.delete.key);
  }
  for (cluster.catchUp(); cluster.state.dirty.size > 0; cluster.catchUp()) await cluster.settle();
  cluster.lags = false;
  return cluster;
}

/** All that the job writes: in a cluster that has the same objects from the start, it is the same. */
function outcome(cluster: GatewayCluster): readonly string[] {
  const isOurs = (raw: RawObject) => JSON.stringify(raw["metadata"]).includes("gateways.fairlead.dev");
  return [...cluster.objects]
    .filter(([id, raw]) => isOurs(raw) || /^(Gateway|TCPRoute|UDPRoute) /.test(id))
    .map(([id, { metadata: _, ...raw }]) => `${id} ${JSON.stringify(raw).replaceAll(/"observedGeneration":\d+/g, "")}`)
    .sort();
}

test("after any history, with a watch that is behind as well, all is what it is from the objects, and nothing is written again", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aStep, { maxLength: 25 }), fc.boolean(), async (steps, lags) => {
      const cluster = await played(steps, lags);
      cluster.state.allAgain();
      expect(await cluster.settle()).toEqual([]);
      // A process that starts anew, with what is there.
      const anew = new GatewayCluster();
      for (const [id, raw] of cluster.objects) {
        const [kind, key] = id.split(" ") as [Made["kind"], Made["key"]];
        anew.put({ kind, key, raw });
      }
      expect(await anew.settle()).toEqual([]);
      expect(outcome(anew)).toEqual(outcome(cluster));
    }),
    { numRuns: 300 },
  );
});

test("without a grant, endpoints of a namespace are reached by its own routes only", async () => {
  const there = ["apps", "data"].flatMap((of, at) => [
    backend("web", {}, of),
    slice("web", [`10.1.${at + 1}.1`], "web-1", { namespace: of }),
  ]);
  const open = gateway("a", [listener("x", 80, "TCP", { namespaces: { from: "All" } }), listener("y", 81)]);
  await fc.assert(
    fc.asyncProperty(fc.array(aRoute, { maxLength: 3 }), async (routes) => {
      const cluster = await played(
        [...there, open, ...routes].map((put) => ({ put })),
        false,
      );
      const spacesOf = new Set(routes.map(({ key }) => key.split("/")[0]));
      // The third number of an address says the namespace of its Service.
      const reached = cluster.mirrored().flatMap((text) => [...text.matchAll(/ 10\.1\.(\d)\./g)]);
      for (const [, of] of reached) expect(spacesOf).toContain(of === "1" ? "apps" : "data");
    }),
    { numRuns: 300 },
  );
});

test("a Service's name is a DNS label, whatever a Gateway is called, and another for another Gateway", () => {
  const DNS_LABEL = /^[a-z]([-a-z0-9]{0,61}[a-z0-9])?$/;
  const name = fc.stringMatching(/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/);
  fc.assert(
    fc.property(name, name, (one, other) => {
      const [first, second] = [one, other].map((text) => serviceName({ name: text, className: "fairlead" }));
      expect(first).toMatch(DNS_LABEL);
      if (one !== other) expect(first).not.toBe(second);
    }),
  );
  const longest = "a".repeat(253);
  const hash = createHash("sha256").update(`${longest}-fairlead`).digest("hex").slice(0, 10);
  expect(serviceName({ name: longest, className: "fairlead" })).toBe(`${"a".repeat(52)}-${hash}`);
});
