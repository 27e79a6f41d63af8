import { LightApiServer } from "@fairlead/testkit/api-server";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSource } from "../src/start/source.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

const api = new LightApiServer();
let server: string;

beforeEach(async () => {
  server = await api.start();
});
afterEach(() => api.stop());

const PROTOBUF = "application/vnd.kubernetes.protobuf, application/json";
const byFlag = (type: string) => configOf([`--master=${server}`, `--kube-api-content-type=${type}`]);

test.each([
  ["by default", () => configOf([`--master=${server}`]), PROTOBUF],
  ["where the flag says so", () => byFlag("application/vnd.kubernetes.protobuf"), PROTOBUF],
  ["not where the flag says JSON", () => byFlag("application/json"), "application/json"],
  ["not where acceptContentTypes says JSON", () => accepting("application/json"), "application/json"],
])("protobuf is asked for %s", async (_when, config, accept) => {
  const { source } = await openSource(config(), "node-a", recordedLog());
  const stop = new AbortController();
  const services = { decode: () => true, onChange: () => stop.abort() };
  await source(() => {}, { answered: () => {}, waited: () => {} }).run({ services }, stop.signal);
  expect(api.requests.at(-1)?.headers.accept).toBe(accept);
});

function accepting(acceptContentTypes: string) {
  const config = configOf([`--master=${server}`]);
  return { ...config, client: { ...config.client, acceptContentTypes } };
}
