import { existsSync } from "node:fs";
import { join } from "node:path";
import { until } from "@fairlead/base/testing";
import { endpointSlice, service } from "@fairlead/testkit";
import { beforeAll, describe, expect, test } from "vitest";
import { BUNDLE, onBundleNode } from "./support/bundle-node.ts";

const filter = join(import.meta.dirname, "../../../packages/kernel/test/seccomp-main.ts");

/** As deploy's manifests have it. */
const CAPABILITIES = ["setpriv", "--bounding-set", "-all,+net_admin,+net_raw", "--inh-caps", "-all"] as const;
const RUNTIME_DEFAULT = [process.execPath, "--no-warnings", filter] as const;

const OBJECTS = [
  service("web", { clusterIPs: ["10.96.0.10"], ports: [{ name: "http", port: 80 }] }),
  endpointSlice("web", {
    service: "web",
    family: "IPv4",
    ports: [{ name: "http", port: 80 }],
    endpoints: [{ address: "10.144.0.9" }],
  }),
];

/** What programs the mode, and how its rules are listed. */
const MODES = [
  ["iptables", ["iptables-save", "-t", "nat"]],
  ["nftables", ["nft", "list", "ruleset"]],
] as const;

onBundleNode("an agent that may do little", ({ inside, manifest, running }) => {
  beforeAll(() => manifest("web.json", JSON.stringify({ apiVersion: "v1", kind: "List", items: OBJECTS })));

  /** Runs the agent until it serves and `meanwhile` is over, and ends it. @returns its log */
  async function serveOnce(
    behind: readonly string[],
    mode: string,
    { stateDir = mode, meanwhile = async () => {} }: { stateDir?: string; meanwhile?: () => Promise<void> } = {},
  ): Promise<readonly string[]> {
    const log: string[] = [];
    const flags = [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${stateDir}`, "-v=2"];
    for await (const line of running(flags, behind)) {
      log.push(line);
      if (!line.includes('"Rules are in place" ipFamily="IPv4"')) continue;
      await meanwhile();
      process.kill(pidOf(log), "SIGTERM");
    }
    return log;
  }

  const cleanUp = () => inside().run([process.execPath, BUNDLE, "--cleanup", "--state-dir="]);
  const pidOf = (log: readonly string[]) => Number(/"Fairlead starts".* pid=(\d+)/.exec(log.join("\n"))?.[1]);
  /** Without times and process. */
  const complaints = (log: readonly string[]) =>
    log.flatMap((line) => (/^[WEF]/.test(line) ? [line.replace(/^.*?\] /, "")] : []));

  describe.skipIf(process.arch !== "x64")("under a seccomp filter like RuntimeDefault", () => {
    test("the filter denies what it is to deny", async () => {
      await expect(inside().run([...RUNTIME_DEFAULT, "/usr/bin/unshare", "-n", "true"])).rejects.toThrow(
        /Operation not permitted/,
      );
    });

    test.each(MODES)("%s mode serves, and nothing is lost", async (mode, list) => {
      const log = await serveOnce([...CAPABILITIES, ...RUNTIME_DEFAULT], mode);
      expect(log.at(-1)).toBe("exit 0");
      expect((await inside().run(list)).stdout).toContain("10.144.0.9");
      expect(complaints(log)).toEqual(complaints(await serveOnce(CAPABILITIES, mode)));
      await cleanUp();
    });
  });

  test("a test that gives up leaves no agent", async ({ signal }) => {
    let pid = Number.NaN;
    for await (const line of running(["--manifests=manifests", "--state-dir="], CAPABILITIES)) {
      pid = pidOf([line]);
      break;
    }
    expect(pid).toBeGreaterThan(0);
    await until(signal, () => !existsSync(`/proc/${pid}`));
  });

  describe("where /run is read-only", () => {
    /** In a mount namespace of its own. */
    const script = 'mount --bind /run /run && mount -o remount,ro,bind /run && exec "$@"';
    const READ_ONLY_RUN = ["unshare", "-m", "sh", "-c", script, "sh"] as const;

    test.each(MODES)("%s mode serves, and the state folder keeps a second agent away", async (mode, list) => {
      const second: string[] = [];
      const meanwhile = async () => {
        for await (const line of running(["--cleanup", `--state-dir=${mode}`], READ_ONLY_RUN)) second.push(line);
      };
      const log = await serveOnce(READ_ONLY_RUN, mode, { meanwhile });
      expect(log.at(-1)).toBe("exit 0");
      expect(second.join("\n")).toMatch(/another agent runs on this node: process \d+ [\s\S]*exit 1$/);
      expect((await inside().run(list)).stdout).toContain("10.144.0.9");
      await cleanUp();
    });

    test("without a state folder either, it serves and says that others are not detected", async () => {
      const log = await serveOnce(READ_ONLY_RUN, "nftables", { stateDir: "" });
      expect(log.at(-1)).toBe("exit 0");
      expect(complaints(log).join("\n")).toMatch(
        /Cannot detect other agents on this node; serving without the node lock" reason=".*EROFS/,
      );
      await cleanUp();
    });
  });
});
