import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { settled, until, VirtualClock } from "@fairlead/base/testing";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { ForeignChanges } from "../src/modes/mode.ts";
import { followForeign, watchConfigFile } from "../src/run/run-agent.ts";
import { aWhile } from "./support/a-while.ts";
import { recordedLog } from "./support/recorded-log.ts";
import { configOf } from "./support/running-agent.ts";

describe("config file", () => {
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
});

/** An agent whose mode follows what others do. */
function following(watchForeign: (notify: ForeignChanges) => Promise<void>) {
  const log = recordedLog();
  let checks = 0;
  const loop = { requestCheck: () => void checks++ };
  const { signal } = new AbortController();
  const done = followForeign({ watchForeign, config: configOf([]), log }, { loop }, signal);
  return { done, log, checks: () => checks };
}

test("what others may have changed is looked at now, and nothing is said before it is", async () => {
  const { checks, log } = following(async (notify) => {
    notify.changed();
    await settled();
    notify.changed();
  });
  await settled();
  expect(checks()).toBe(2);
  expect(log.lines).toEqual([]);
});

test("where nothing can be followed any more, a line says what still finds it", async () => {
  const { done, log } = following(() => Promise.reject(new Error("no multicast group")));
  await done;
  expect(log.lines).toMatchObject([{ level: "warn", fields: { syncPeriod: "30000ms", error: "no multicast group" } }]);
});
