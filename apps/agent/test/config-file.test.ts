import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { watchConfigFile } from "../src/start/config-file.ts";
import { settle, VirtualClock } from "./support/virtual-clock.ts";

let dir = "";
let stop = new AbortController();

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "fairlead-config-"));
  stop = new AbortController();
});
afterEach(async () => {
  stop.abort();
  await rm(dir, { recursive: true });
});

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
  watchConfigFile({
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

/** Goes on in virtual time until it happened; events of the file system come on real turns of the event loop. */
async function until(clock: VirtualClock, condition: () => boolean): Promise<boolean> {
  for (let turn = 0; turn < 2_000 && !condition(); turn++) {
    await clock.advance(200);
    await settle();
  }
  return condition();
}

test("a ConfigMap's new version is noticed once, the same text in a new version is not", async () => {
  await mountConfigMap("..v1", "mode: iptables");
  await symlink("..data/config.conf", join(dir, "config.conf"));
  const { clock, changes } = watched("mode: iptables");
  await mountConfigMap("..v2", "mode: iptables");
  expect(await until(clock, () => changes.count > 0)).toBe(false);
  await mountConfigMap("..v3", "mode: ipvs");
  expect(await until(clock, () => changes.count > 0)).toBe(true);
  await mountConfigMap("..v4", "mode: nftables");
  await until(clock, () => false);
  expect(changes.count).toBe(1);
});

test("a change between reading the file and watching it is noticed", async () => {
  await writeFile(join(dir, "config.conf"), "new");
  const { clock, changes } = watched("old");
  expect(await until(clock, () => changes.count > 0)).toBe(true);
});

test("a file that is gone is no change until another one is there", async () => {
  await writeFile(join(dir, "config.conf"), "old");
  const { clock, changes } = watched("old");
  await rm(join(dir, "config.conf"));
  expect(await until(clock, () => changes.count > 0)).toBe(false);
  await writeFile(join(dir, "config.conf"), "new");
  expect(await until(clock, () => changes.count > 0)).toBe(true);
});
