import type { ApiClient } from "@fairlead/lab/control-plane/api-client";
import { expect, test } from "vitest";
import { AddressScanner } from "../src/churn/addresses.ts";
import { delaysOf, type Recording, type SeenRequest, trafficBetween } from "../src/churn/figures.ts";
import { readAddresses } from "../src/churn/kernel-times.ts";
import { changeAtRate } from "../src/churn/measure-churn.ts";

test("an address in a stream counts once it is whole, and its first time only", () => {
  const found = new Map<string, number>();
  const scanner = new AddressScanner(found);
  scanner.read(Buffer.from('{"addresses":["10.152.1.2'), 1);
  expect(found.size).toBe(0);
  scanner.read(Buffer.from('3"],["10.144.0.1"]'), 2);
  scanner.read(Buffer.from('"10.152.1.23" \x0a\x0a10.153.0.7\x12'), 3);
  expect([...found]).toEqual([
    ["10.152.1.23", 2],
    ["10.153.0.7", 3],
  ]);
});

/** One message of nf_tables with an address at its end. @param type such as 12, NFT_MSG_NEWSETELEM */
function message(type: number, address: readonly number[]): Buffer {
  const bytes = Buffer.alloc(28);
  bytes.writeUInt32LE(bytes.length, 0);
  bytes.set([type, 10], 4);
  bytes.set(address, 24);
  return bytes;
}

test("the kernel has an address with the first element or rule that comes with it", () => {
  const found = new Map<string, number>();
  readAddresses(Buffer.concat([message(14, [10, 152, 0, 1]), message(12, [10, 152, 0, 2])]), 5, found);
  readAddresses(Buffer.concat([message(6, [10, 155, 0, 3]), message(12, [10, 144, 0, 4])]), 6, found);
  readAddresses(message(12, [10, 152, 0, 2]), 7, found);
  expect([...found]).toEqual([
    ["10.152.0.2", 5],
    ["10.155.0.3", 6],
  ]);
});

test("a change that the API server refuses while others follow is an error in the end", async () => {
  const refusing = { patch: () => Promise.reject(new Error("HTTP 409")) } as unknown as ApiClient;
  const changed = changeAtRate(refusing, { services: 1, endpoints: 1 }, { perSecond: 100, seconds: 0.03 }, 0);
  await expect(changed).rejects.toThrow("HTTP 409");
});

test("delays are split by the program that had the change, and a change that is missing is an error", () => {
  const changes = [{ address: "10.152.0.1", asked: 100 }];
  const [relayed, programmed] = [new Map([["10.152.0.1", 105]]), new Map([["10.152.0.1", 107]])];
  expect(delaysOf(changes, relayed, programmed)).toMatchObject({
    api: { median: 5 },
    own: { median: 2 },
    total: { median: 7, count: 1 },
  });
  expect(() => delaysOf(changes, relayed, new Map())).toThrow("no event with 10.152.0.1 was seen");
});

test("traffic is counted by kind of request, including what an open watch brought since", () => {
  const request = (path: string, bytes: number): SeenRequest => ({
    at: 0,
    method: "GET",
    path,
    status: 200,
    bytes,
    protocol: "1.1",
    encoding: "",
  });
  const recording = (requests: readonly SeenRequest[]): Recording => ({ requests, addresses: {} });
  const services = "/api/v1/services?watch=true&sendInitialEvents=true";
  const before = recording([request(services, 100)]);
  const after = recording([request(services, 150), request("/api/v1/nodes?watch=true", 7), request("/version", 3)]);
  expect(trafficBetween(before, after)).toEqual({
    list: { requests: 0, bytes: 50 },
    watch: { requests: 1, bytes: 7 },
    other: { requests: 1, bytes: 3 },
  });
});
