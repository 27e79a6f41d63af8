import { readFileSync } from "node:fs";
import { valueAt } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { errorOf } from "../src/api/errors.ts";
import { type ListParser, listParser } from "../src/api/list-parser.ts";
import { protobufEvents } from "../src/api/protobuf-events.ts";
import { protobufListParser } from "../src/api/protobuf-list-parser.ts";
import { type CutEvents, jsonEvents } from "../src/api/watch.ts";
import { resourceSpecs } from "../src/resources.ts";
import { trimmed } from "./support/trimmed.ts";

/**
 * What kube-apiserver v1.36.3 answered, in both encodings, to the same requests: lists with
 * `curl -H "Accept: application/vnd.kubernetes.protobuf"` and without, a watch with sendInitialEvents, and a list that
 * is not older than a version of the future.
 */
const recorded = (file: string) => readFileSync(new URL(`fixtures/protobuf/${file}`, import.meta.url));

const FILES = {
  Service: "services",
  EndpointSlice: "endpoint-slices",
  Node: "nodes",
  ServiceCIDR: "service-cidrs",
} as const;
const kinds = resourceSpecs({ nodeName: "node-a" }).map(({ kind, protobuf: definition = [] }) => ({
  kind,
  definition,
}));
const ofKind = (kind: string) => {
  const found = kinds.find((one) => one.kind === kind);
  if (found === undefined) throw new Error(`no kind ${kind}`);
  return found;
};

function whole(parser: ListParser, bytes: Uint8Array) {
  const raws = [...parser.write(bytes)].map((item) => valueAt(item, "raw"));
  return { raws, head: parser.end() };
}

function eventsIn(cut: CutEvents, bytes: Uint8Array) {
  return [...cut(bytes)];
}

test.each(Object.entries(FILES))("a recorded list of kind %s is what its JSON is", (kind, file) => {
  const of = ofKind(kind);
  const json = whole(listParser(), recorded(`${file}.json`));
  expect(json.raws.length).toBeGreaterThan(0);
  const protobuf = whole(protobufListParser(of), recorded(`${file}.pb`));
  expect(protobuf).toEqual({ head: json.head, raws: json.raws.map((raw) => trimmed(raw, of.definition)) });
});

test("a recorded watch is what its JSON is, up to the bookmark that ends the initial events", () => {
  const of = ofKind("Service");
  const json = eventsIn(jsonEvents(), recorded("watch.jsonl"));
  expect(json.map(({ type }) => type)).toEqual(["ADDED", "BOOKMARK"]);
  const expected = json.map((event) =>
    "object" in event ? { ...event, object: trimmed(event.object, of.definition) } : event,
  );
  expect(eventsIn(protobufEvents(of), recorded("watch.pb"))).toEqual(expected);
});

describe("a recorded refusal", () => {
  test.each(["json", "pb"])("in %s: the server is behind the version", async (encoding) => {
    const type = encoding === "pb" ? "application/vnd.kubernetes.protobuf" : "application/json";
    const body = (async function* () {
      yield recorded(`too-large.${encoding}`);
    })();
    const header = (name: string) => (name === "content-type" ? type : undefined);
    const error = await errorOf({ status: 504, header, body });
    expect(error).toMatchObject({ code: 504, reason: "Timeout", versionTooLarge: true });
    expect(error.message).toMatch(/Too large resource version: 999999999/);
  });
});
