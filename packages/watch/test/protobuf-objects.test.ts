import { encodeObject } from "@fairlead/testkit/api-server";
import { runs } from "@fairlead/tooling/runs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { readMessage } from "../src/protobuf/read-message.ts";
import { unwrap } from "../src/protobuf/wrapped.ts";
import { resourceSpecs } from "../src/resources.ts";
import { stored } from "./support/stored-objects.ts";

const kinds = resourceSpecs({ nodeName: "node-a" }).map(({ kind, protobuf = [] }) => ({ kind, definition: protobuf }));

/** Fields that no proxy reads, of all kinds of wire types. */
const UNREAD = {
  metadata: {
    uid: "3f0c6bcd",
    generation: 4_294_967_297,
    ownerReferences: [{ apiVersion: "v1", kind: "Service", name: "x", uid: "y", controller: true }],
    managedFields: [{ manager: "m", operation: "Update", fieldsType: "FieldsV1", fieldsV1: { "f:spec": {} } }],
  },
  spec: { selector: { app: "x" }, publishNotReadyAddresses: true, loadBalancerClass: "c", unschedulable: true },
  status: { phase: "Running" },
};

function withUnread(object: object): object {
  const merged = Object.entries(object).map(([name, value]) => {
    const more = Object.entries(UNREAD).find(([of]) => of === name)?.[1];
    return [name, more === undefined ? value : { ...more, ...value }];
  });
  return Object.fromEntries(merged);
}

function read(kind: keyof typeof stored | string, object: object, definition: Parameters<typeof readMessage>[1]) {
  return readMessage(unwrap(encodeObject("v1", kind, object)).bytes, definition);
}

describe.each(kinds)("$kind", ({ kind, definition }) => {
  const objects = Object.entries(stored).find(([of]) => of === kind)?.[1] ?? fc.constant({});

  test("is what its JSON is, without what nobody reads", () => {
    fc.assert(
      fc.property(objects, (object) => {
        expect(read(kind, withUnread(object), definition)).toEqual(JSON.parse(JSON.stringify(object)));
      }),
      { numRuns: runs(500) },
    );
  });
});

test("zeros that Go writes in protobuf and leaves out in JSON are left out", () => {
  const definition = kinds.find(({ kind }) => kind === "Service")?.definition ?? [];
  const service = {
    metadata: { name: "a", namespace: "", resourceVersion: "" },
    spec: { ports: [{ name: "", port: 0, nodePort: 0 }], clusterIP: "", healthCheckNodePort: 0, type: "" },
    status: { loadBalancer: {} },
  };
  expect(read("Service", service, definition)).toEqual({
    metadata: { name: "a" },
    spec: { ports: [{ port: 0 }] },
    status: { loadBalancer: {} },
  });
});
