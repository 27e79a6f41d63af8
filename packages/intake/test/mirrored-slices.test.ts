import type { EndpointSlice } from "@fairlead/core";
import { decodeEndpointSlice } from "@fairlead/core";
import { userDefinedNetwork as udn } from "@fairlead/testkit";
import type { ObjectChange } from "@fairlead/watch";
import { expect, test } from "vitest";
import { keepingMirrors, MirroredSlices } from "../src/index.ts";

const SERVICE = "nad-l3/sample-deployment";

/** A source that gives single objects, as both sources do. */
function followed() {
  const mirrors = new MirroredSlices();
  const given: ObjectChange<EndpointSlice>[] = [];
  const changed: string[] = [];
  const to = {
    decode: (raw: unknown) => decodeEndpointSlice(raw).object,
    onChange: (change: ObjectChange<EndpointSlice>) => void given.push(change),
  };
  const { decode, onChange } = keepingMirrors(to, mirrors, (service) => changed.push(service));
  const put = (name: string, raw: unknown) => {
    const object = decode(raw);
    if (object !== undefined) void onChange({ type: "upsert", key: `nad-l3/${name}`, object });
  };
  const remove = (name: string) => void onChange({ type: "delete", key: `nad-l3/${name}` });
  const addresses = () => mirrors.of(SERVICE).flatMap(({ slice }) => slice.endpoints.map(({ address }) => address));
  return { mirrors, given, changed, put, remove, addresses };
}

/** A copy with other metadata, or another body. */
const changed = (more: object) => ({ ...udn.mirrored, ...more });
const withLabels = (labels: object) => changed({ metadata: { namespace: "nad-l3", name: "m", labels } });
const MANAGED = { "endpointslice.kubernetes.io/managed-by": "endpointslice-mirror-controller.k8s.ovn.org" };
const NAMED = { ...MANAGED, "k8s.ovn.org/service-name": "sample-deployment" };

test("mirrored slices are kept apart, with their network; those of Kubernetes' own controller are given on", () => {
  const one = followed();
  one.put("s", udn.slice);
  one.put("m", udn.mirrored);
  expect(one.given).toMatchObject([{ type: "upsert", object: { endpoints: [{ address: "10.244.1.17" }] } }]);
  expect(one.mirrors.of(SERVICE)).toMatchObject([
    { network: "l3-network", source: "sample-deployment-rkk4n", slice: { endpoints: [{ address: "10.128.1.3" }] } },
  ]);
  expect(one.mirrors.of("nad-l3/other")).toEqual([]);
});

test("they are followed: another address, several, and one that goes", () => {
  const one = followed();
  one.put("m", udn.mirrored);
  one.put("m", changed({ endpoints: [{ addresses: ["10.128.1.4"] }] }));
  one.put("l", withLabels(NAMED));
  expect(one.addresses()).toEqual(["10.128.1.4", "10.128.1.3"]);
  one.remove("m");
  expect(one.addresses()).toEqual(["10.128.1.3"]);
  one.remove("l");
  expect(one.addresses()).toEqual([]);
  expect(new Set(one.changed)).toEqual(new Set([SERVICE]));
  expect(one.given).toEqual([]);
  one.remove("s");
  expect(one.given).toEqual([{ type: "delete", key: "nad-l3/s" }]);
});

test("the first releases of OVN-Kubernetes name network and source in labels", () => {
  const one = followed();
  const labels = { "k8s.ovn.org/endpointslice-network": "blue", "k8s.ovn.org/source-endpointslice": "web-1" };
  one.put("m", withLabels({ ...NAMED, ...labels }));
  expect(one.mirrors.of(SERVICE)).toMatchObject([{ network: "blue", source: "web-1" }]);
});

test.each([
  ["another controller's", withLabels({ ...NAMED, "endpointslice.kubernetes.io/managed-by": "someone" })],
  ["one without a Service", withLabels(MANAGED)],
  ["one with a name that no Service has", withLabels({ ...MANAGED, "k8s.ovn.org/service-name": "a b" })],
  ["one of names", changed({ addressType: "FQDN" })],
  ["what is no object", "slice"],
])("%s is neither", (_what, raw) => {
  const one = followed();
  one.put("m", raw);
  expect([one.given, one.addresses()]).toEqual([[], []]);
});
