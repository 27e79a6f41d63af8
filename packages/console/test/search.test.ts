import { ClusterState, decodeEndpointSlice, decodeService } from "@fairlead/core";
import { expect, test } from "vitest";
import { searchServices } from "../src/model/search.ts";
import { shop } from "./support/objects.ts";

const state = new ClusterState();
for (const object of shop) {
  const service = object.kind === "Service" ? decodeService(object).object : undefined;
  if (service !== undefined) state.upsertService(service);
  const slice = object.kind === "EndpointSlice" ? decodeEndpointSlice(object).object : undefined;
  if (slice !== undefined) state.upsertSlice(slice);
}

test.each([
  ["a part of a name", "ngin", ["default/nginx-ovn"]],
  ["capitals", "WEB", ["shop/web"]],
  ["a namespace", "shop/", ["shop/web"]],
  ["a ClusterIP", "10.96.0.12", ["default/nobody"]],
  ["a ClusterIP and port", "10.96.0.12:80", ["default/nobody"]],
  ["a ClusterIP and a port that it has not", "10.96.0.12:81", []],
  ["a load balancer's address", "203.0.113.9", ["shop/web"]],
  ["a node port", "30080", ["shop/web"]],
  ["a pod's address", "10.144.2.7", ["shop/web"]],
  ["the beginning of addresses", "10.244.0.", ["default/both", "default/nginx-ovn"]],
  ["nothing that is there", "nope", []],
  ["a pattern, which is only text", ".*", []],
])("%s", (_what, text, found) => {
  expect(searchServices(state, text)).toEqual(found);
});

test("nothing finds everything, in order", () => {
  expect(searchServices(state, " ")).toEqual([
    "default/both",
    "default/nginx-ovn",
    "default/nobody",
    "default/stray",
    "shop/web",
  ]);
});
