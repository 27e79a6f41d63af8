import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { until, VirtualClock } from "@fairlead/base/testing";
import { afterEach, beforeEach, expect, test } from "vitest";
import { followFiles, kubeconfigOf, watchFile } from "../src/watched-files.ts";
import { recordedLog } from "./support/fake-node.ts";
import { aWhile } from "./support/running-agent.ts";

let dir = "";
let stop = new AbortController();

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-config-"));
  stop = new AbortController();
});
afterEach(() => stop.abort());

/** A folder as kubelet mounts a ConfigMap: file → ..data/file, ..data → a folder of that version. */
async function mountConfigMap(version: string, text: string): Promise<void> {
  await mkdir(join(dir, version));
  await writeFile(join(dir, version, "config.conf"), text);
  await symlink(version, join(dir, "..data_tmp"));
  await rename(join(dir, "..data_tmp"), join(dir, "..data"));
}

function watched(text: string) {
  const clock = new VirtualClock();
  const changes = { count: 0 };
  watchFile({
    path: join(dir, "config.conf"),
    text,
    clock,
    signal: stop.signal,
    onChange: () => {
      changes.count++;
    },
    onError: (error) => {
      throw error;
    },
  });
  return { clock, changes };
}

test("a ConfigMap's new version is noticed once, the same text in a new version is not", async ({ signal }) => {
  await mountConfigMap("..v1", "mode: iptables");
  await symlink("..data/config.conf", join(dir, "config.conf"));
  const { clock, changes } = watched("mode: iptables");
  await mountConfigMap("..v2", "mode: iptables");
  await aWhile(clock);
  expect(changes.count).toBe(0);
  await mountConfigMap("..v3", "mode: ipvs");
  await until(signal, () => changes.count > 0, clock);
  await mountConfigMap("..v4", "mode: nftables");
  await aWhile(clock);
  expect(changes.count).toBe(1);
});

test("a change between reading the file and watching it is noticed", async ({ signal }) => {
  await writeFile(join(dir, "config.conf"), "new");
  const { clock, changes } = watched("old");
  await until(signal, () => changes.count > 0, clock);
});

test("a file that is gone is no change until another one is there", async ({ signal }) => {
  await writeFile(join(dir, "config.conf"), "old");
  const { clock, changes } = watched("old");
  await rm(join(dir, "config.conf"));
  await aWhile(clock);
  expect(changes.count).toBe(0);
  await writeFile(join(dir, "config.conf"), "new");
  await until(signal, () => changes.count > 0, clock);
});

const KUBECONFIG = {
  clusters: [{ name: "c", cluster: { server: "https://192.0.2.1:6443", "certificate-authority-data": "Y2E=" } }],
  users: [{ name: "u", user: { token: "first" } }],
  contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
  "current-context": "c",
};

/** In one step: a file that is written in place is now and then read half written, and of no use. */
async function written(text: string): Promise<void> {
  await writeFile(join(dir, "kubeconfig.new"), text);
  await rename(join(dir, "kubeconfig.new"), join(dir, "kubeconfig"));
}

async function followed() {
  await written(JSON.stringify(KUBECONFIG));
  const client = { kubeconfig: join(dir, "kubeconfig"), allowExecCredentials: false };
  const [clock, log, reasons] = [new VirtualClock(), recordedLog(), [] as string[]];
  const kubeconfig = await kubeconfigOf(client);
  followFiles({ kubeconfig }, { clock, log }, stop.signal, (reason) => reasons.push(reason));
  return { clock, log, reasons };
}

test.each([
  ["server", /192\.0\.2\.1/, "192.0.2.2"],
  ["CA", /Y2E=/, "b3RoZXI="],
  ["token", /first/, "second"],
  ["proxy", /"server"/, '"proxy-url":"http://192.0.2.9:3128","server"'],
  ["user", /"user":"u"/, '"other":"u"'],
])("another %s in the kubeconfig ends the process", async (_, from, to) => {
  const { clock, reasons } = await followed();
  await aWhile(clock);
  expect(reasons).toEqual([]);
  await written(JSON.stringify(KUBECONFIG).replace(from, to));
  const { signal } = stop;
  await until(signal, () => reasons.length > 0, clock);
  expect(reasons).toEqual(["the kubeconfig changed: ending, to be started again with the new one"]);
});

test("a kubeconfig that is half written, of no use, or gone leaves the connection as it is, and says so once", async ({
  signal,
}) => {
  const { clock, log, reasons } = await followed();
  const wrong = ["", JSON.stringify(KUBECONFIG).slice(0, 90), "kind: Config"];
  for (const [at, text] of wrong.entries()) {
    await written(text);
    await until(signal, () => log.lines.length > at, clock);
    await writeFile(join(dir, "other"), text);
    await aWhile(clock);
  }
  await rm(join(dir, "kubeconfig"));
  await until(signal, () => log.lines.length > wrong.length, clock);
  expect(log.messages("warn")).toEqual(
    Array(4).fill("The kubeconfig changed and cannot be used; the previous connection stays in effect"),
  );
  expect(reasons).toEqual([]);
});

test("another context and comments of a kubeconfig are no change", async () => {
  const { clock, reasons } = await followed();
  const { clusters, ...others } = KUBECONFIG;
  const more = { ...others, clusters: [...clusters, { name: "d", cluster: { server: "https://192.0.2.3" } }] };
  await written(`# edited\n${JSON.stringify(more)}`);
  await aWhile(clock);
  expect(reasons).toEqual([]);
});
