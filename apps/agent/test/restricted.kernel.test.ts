import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { endpointSlice, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNoKernel } from "./support/real-kernel.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const filter = join(import.meta.dirname, "../../../packages/kernel/test/seccomp-main.ts");
const reason = await whyNoKernel();

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

describe.skipIf(reason !== undefined)(
  `an agent that may do little${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    let dir = "";
    let namespace: NetworkNamespace;

    beforeAll(async () => {
      namespace = await createNamespace();
      dir = await mkdtemp(join(tmpdir(), "fairlead-restricted-"));
      await mkdir(join(dir, "manifests"));
      const list = { apiVersion: "v1", kind: "List", items: OBJECTS };
      await writeFile(join(dir, "manifests", "web.json"), JSON.stringify(list));
    });
    afterAll(async () => {
      await namespace.dispose();
      await rm(dir, { recursive: true });
    });

    const inside = () => createRunner({ prefix: namespace.argvPrefix, env: namespace.env });

    /** The lines of a bundle's run as they come, its exit code the last of them: `exit 0`. */
    function running(behind: readonly string[], ...flags: readonly string[]) {
      const script = 'cd "$1" && shift && "$@" 2>&1; echo "exit $?"';
      const argv = ["sh", "-c", script, "sh", dir, ...behind, process.execPath, bundle, ...flags] as const;
      return lines(inside().stream(argv, { timeoutMs: 0 }));
    }

    /** Runs the agent until it serves and `meanwhile` is over, and ends it. @returns its log */
    async function serveOnce(
      behind: readonly string[],
      mode: string,
      { stateDir = mode, meanwhile = async () => {} }: { stateDir?: string; meanwhile?: () => Promise<void> } = {},
    ): Promise<readonly string[]> {
      const log: string[] = [];
      const flags = [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${stateDir}`, "-v=2"];
      for await (const line of running(behind, ...flags)) {
        log.push(line);
        if (!line.includes('"Rules are in place" ipFamily="IPv4"')) continue;
        await meanwhile();
        process.kill(pidOf(log), "SIGTERM");
      }
      return log;
    }

    const cleanUp = () => inside().run([process.execPath, bundle, "--cleanup", "--state-dir="]);
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

    describe("where /run is read-only", () => {
      /** In a mount namespace of its own. */
      const script = 'mount --bind /run /run && mount -o remount,ro,bind /run && exec "$@"';
      const READ_ONLY_RUN = ["unshare", "-m", "sh", "-c", script, "sh"] as const;

      test.each(MODES)("%s mode serves, and the state folder keeps a second agent away", async (mode, list) => {
        const second: string[] = [];
        const meanwhile = async () => {
          for await (const line of running(READ_ONLY_RUN, "--cleanup", `--state-dir=${mode}`)) second.push(line);
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
  },
);
