import type { ObjectSource, SourceReport } from "@fairlead/watch";
import { expect, test } from "vitest";
import { SourceHealth } from "../src/index.ts";
import { Events } from "./support/events.ts";
import { LiveObjects } from "./support/live-objects.ts";
import { shop } from "./support/objects.ts";
import { openConsole } from "./support/start.ts";
import { addressOf, cookieOf } from "./support/visitor.ts";

const refused: SourceReport = {
  type: "failing",
  problem: "refused",
  server: "https://10.0.0.1:6443",
  address: "10.0.0.1",
  milliseconds: 500,
  error: "403 services is forbidden",
  resources: ["services"],
};
const failing = {
  problem: "refused",
  server: "https://10.0.0.1:6443",
  error: "403 services is forbidden",
  resources: ["services"],
  since: 9_500,
};

async function opened(source: ObjectSource) {
  const health = new SourceHealth(() => 10_000);
  const running = await openConsole(source, "", { health });
  const { base } = addressOf(running.url);
  const cookie = await cookieOf(running.url);
  return { health, running, open: () => Events.open(base, { cookie }) };
}

test("a page that waits for the first objects is given the reason, and each other one", async () => {
  const never: ObjectSource = {
    run: (_to, signal) => new Promise((end) => signal.addEventListener("abort", () => end())),
  };
  const { health, running, open } = await opened(never);
  await using _running = running;
  health.take(refused);
  using events = await open();
  const [first] = await events.until(({ name }) => name === "source");
  expect(first?.data).toEqual({ failing });
  health.take({ ...refused, error: "403 endpointslices is forbidden" });
  const [second] = await events.until(({ name }) => name === "source");
  expect(second?.data).toMatchObject({ failing: { error: "403 endpointslices is forbidden" } });
});

test("a page that is open is given when the server stops answering, and when it answers again", async () => {
  const { health, running, open } = await opened(new LiveObjects(shop));
  await using _running = running;
  using events = await open();
  const [begin] = await events.until(({ name }) => name === "whole");
  expect(begin?.data["source"]).toEqual({});
  health.take({ ...refused, problem: "unreachable" });
  const isSource = ({ name }: { readonly name: string }) => name === "source";
  expect((await events.until(isSource)).at(-1)?.data).toEqual({ failing: { ...failing, problem: "unreachable" } });
  using later = await open();
  expect((await later.until(({ name }) => name === "begin"))[0]?.data["source"]).toMatchObject({ failing: {} });
  health.take({ type: "recovered", server: "https://10.0.0.1:6443", milliseconds: 700 });
  expect((await events.until(isSource)).at(-1)?.data).toEqual({});
});

test("Nodes that may not be listed are reported, and do not keep the services back", async () => {
  const objects = new LiveObjects(shop, { Node: "forbidden" });
  const { running, open } = await opened(objects);
  await using _running = running;
  using events = await open();
  const [begin] = await events.until(({ name }) => name === "whole");
  expect(begin?.data).toMatchObject({ services: 5, source: { nodesForbidden: true }, nodes: [{ node: "node-a" }] });
});
