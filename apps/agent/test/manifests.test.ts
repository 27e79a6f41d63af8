import { mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until } from "@fairlead/base/testing";
import { endpointSlice, service } from "@fairlead/testkit";
import { createManifestsSource } from "@fairlead/watch";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type RunningAgent, runningAgent } from "./support/running-agent.ts";

let dir = "";
let agent: RunningAgent | undefined;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-manifests-"));
});
afterEach(async () => {
  await agent?.stop();
  await rm(dir, { recursive: true });
});

const web = service("web", { clusterIPs: ["10.96.67.75"], ports: [{ port: 80 }] });

function slice(...addresses: string[]) {
  const endpoints = addresses.map((address) => ({ address }));
  return endpointSlice("web-1", { service: "web", family: "IPv4", ports: [{ port: 80 }], endpoints });
}

async function write(file: string, objects: readonly unknown[]): Promise<void> {
  await writeFile(join(dir, `.${file}`), JSON.stringify(objects));
  await rename(join(dir, `.${file}`), join(dir, file));
}

test("a folder of manifests is served and followed live", async ({ signal }) => {
  await write("web.json", [web, slice("10.144.0.1")]);
  const running = runningAgent({ source: createManifestsSource({ path: dir, nodeName: "node-a" }) });
  agent = running;
  const endpoints = () => running.nat().flatMap((rule) => /--to-destination (\S+)/.exec(rule)?.[1] ?? []);

  await until(signal, () => endpoints().length === 1, running.clock);
  expect(endpoints()).toEqual(["10.144.0.1:80"]);
  await write("web.json", [web, slice("10.144.0.2", "10.144.0.3")]);
  await until(signal, () => endpoints().length === 2, running.clock);
  expect(endpoints().sort()).toEqual(["10.144.0.2:80", "10.144.0.3:80"]);
  await rm(join(dir, "web.json"));
  await until(signal, () => endpoints().length === 0, running.clock);
  expect(running.nat().join("\n")).not.toContain("10.96.67.75");
});
