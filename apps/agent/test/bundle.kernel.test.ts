import { existsSync } from "node:fs";
import { mkdir, mkdtemp, rename, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { errorCode } from "@fairlead/base";
import { follow, until } from "@fairlead/base/testing";
import { createRunner, lines, type Runner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { compareRuleSets, parseSave } from "@fairlead/netfilter";
import { type GoldenScenario, goldenScenarios } from "@fairlead/testkit";
import { beforeAll, describe, expect, test } from "vitest";
import { descriptorLimit, descriptorShares, relayLimits } from "../src/descriptors.ts";
import { BUNDLE } from "./support/bundle.ts";
import { isNowInPlace, manifestOf, onBundleNode, pidOf, whyNoKernel } from "./support/bundle-node.ts";

const MODES = [
  ["iptables", ["iptables-save", "-t", "nat"]],
  ["nftables", ["nft", "list", "ruleset"]],
] as const;

/** Holds so many connections to the health port, and squats the name of an abstract socket: any user could. */
const ATTACK = `
  const { connect, createServer } = require("node:net");
  const opened = Array.from({ length: 600 }, () => new Promise((resolve) =>
    connect(10256, "127.0.0.1").on("connect", resolve).on("error", resolve).on("close", resolve)));
  createServer().listen("\\0fairlead-proxy", async () => {
    await Promise.all(opened);
    // Taken after all of them: whether it is answered or cut, they have been by then.
    await fetch("http://127.0.0.1:10256/livez").catch(() => {});
    console.log("held");
  });
  setInterval(() => {}, 60_000);`;

const SECOND = "default/second:http cluster IP";

const reason = await whyNoKernel();

const ASK_LIVEZ = `fetch("http://127.0.0.1:10256/livez").then(({ status }) => console.log(status));`;

test.each([
  [160, { clients: 20, relayed: 60 }],
  [1_024, { clients: 192, relayed: 576 }],
  [1_048_576, { clients: 1_024, relayed: 1_047_296 }],
  [Number.POSITIVE_INFINITY, { clients: 1_024, relayed: Number.POSITIVE_INFINITY }],
])("of %i descriptors syncs keep their part", (limit, shares) => {
  expect(descriptorShares(limit)).toEqual(shares);
});

test.each([
  [1_024, { maxSockets: 32_000, maxSocketsPerService: 16_000 }, { maxSockets: 576, maxSocketsPerService: 288 }],
  [1_024, { maxSockets: 500, maxSocketsPerService: 16_000 }, { maxSockets: 500, maxSocketsPerService: 16_000 }],
  [160, { maxSockets: 32_000, maxSocketsPerService: 100 }, { maxSockets: 60, maxSocketsPerService: 2 }],
])("of %i descriptors the clients of one relay leave their part to all others", (limit, configured, limits) => {
  expect(relayLimits(configured, limit)).toEqual(limits);
});

test("the limit is read of this process; without /proc there is none", () => {
  expect(descriptorLimit()).toBeGreaterThan(0);
  expect(descriptorLimit("/does/not/exist")).toBe(Number.POSITIVE_INFINITY);
});

onBundleNode("clients and descriptors", ({ dir, inside, manifest, cleanUp }) => {
  beforeAll(() => write("first", "10.96.0.10"));

  const stream = (...argv: readonly [string, ...string[]]) => lines(inside().stream(argv, { timeoutMs: 0 }));

  /** It ends when the reader stops. */
  function limitedTo(files: number, flags: readonly string[]) {
    const script = `cd "$1" && shift && ulimit -n ${files} && exec "$@" 2>&1`;
    return stream("sh", "-c", script, "sh", dir(), process.execPath, BUNDLE, ...flags);
  }

  const write = (name: string, clusterIP: string) =>
    manifest(`${name}.json`, manifestOf(name, clusterIP, "10.144.0.9"));

  test("clients that hold every connection they can get keep no sync from its tools", async () => {
    const flags = ["--manifests=manifests", "--state-dir=state", "-v=2"] as const;
    const rules = async () => (await inside().run(["iptables-save", "-t", "nat"])).stdout;
    const log: string[] = [];
    let attacking: AsyncGenerator<string> | undefined;
    for await (const line of limitedTo(160, flags)) {
      log.push(line);
      if (isNowInPlace(log)) {
        attacking = stream(process.execPath, "-e", ATTACK);
        expect((await attacking.next()).value).toBe("held");
        await write("second", "10.96.0.20");
      }
      if (line.includes("EMFILE")) break;
      // Other syncs may come before the one that takes in the change.
      if (line.includes('"Synced" ipFamily="IPv4"') && (await rules()).includes(SECOND)) break;
    }
    expect(log.join("\n")).not.toContain("EMFILE");
    expect(await rules()).toContain(SECOND);
    await attacking?.return(undefined);
  });

  test.each([
    [64, ...MODES[0]],
    [40, ...MODES[1]],
  ] as const)("where %i files may be open, %s mode serves", async (files, mode, list) => {
    const flags = [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${mode}`, "-v=2"] as const;
    const log: string[] = [];
    let livez = 0;
    for await (const line of limitedTo(files, flags)) {
      log.push(line);
      if (line.includes("EMFILE")) break;
      if (!isNowInPlace(log)) continue;
      livez = Number((await inside().run([process.execPath, "-e", ASK_LIVEZ])).stdout);
      break;
    }
    expect(livez, log.join("\n")).toBe(200);
    expect((await inside().run(list)).stdout).toContain("10.96.0.10");
    await cleanUp();
  });
});

onBundleNode("SIGUSR2, whenever it comes", ({ inside, manifest, running, cleanUp }) => {
  const write = (name: string, address: string) =>
    manifest(`${name}.json`, manifestOf(name, `10.96.0.${address.split(".").at(-1)}`, address));

  beforeAll(() => write("first", "10.144.0.9"));

  function signals(pid: number): void {
    for (let n = 0; n < 200; n++) process.kill(pid, "SIGUSR2");
  }

  /** It may have ended by then. */
  function lateSignals(pid: number): void {
    try {
      signals(pid);
    } catch (error) {
      if (errorCode(error) !== "ESRCH") throw error;
    }
  }

  test.each([
    [...MODES[0], ["iptables", "-t", "nat", "-F", "KUBE-SERVICES"]],
    [...MODES[1], ["nft", "flush", "ruleset"]],
  ] as const)("%s mode: from the first line on, during syncs, and while it stops", async (mode, list, damage) => {
    const log: string[] = [];
    const rules = async () => (await inside().run(list)).stdout;
    const flags = [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${mode}`, "-v=2"];
    for await (const line of running(flags)) {
      log.push(line);
      if (line.includes('"Fairlead starts"')) signals(pidOf(log));
      if (!isNowInPlace(log)) continue;
      signals(pidOf(log));
      await write(`more-${mode}`, mode === "iptables" ? "10.144.0.10" : "10.144.0.11");
      await inside().run(damage);
      signals(pidOf(log));
      await expect.poll(rules).toContain("10.144.0.9");
      await expect.poll(rules).toMatch(/10\.144\.0\.1[01]/);
      signals(pidOf(log));
      process.kill(pidOf(log), "SIGTERM");
      lateSignals(pidOf(log));
    }
    expect(log.at(-1)).toBe("exit 0");
    await cleanUp();
  });

  test("a proxy on local ports has nothing to write, and goes on", async () => {
    const log: string[] = [];
    const flags = ["--proxy-mode=userspace", "--userspace-only", "--manifests=manifests", "--state-dir=", "-v=2"];
    for await (const line of running(flags)) {
      log.push(line);
      if (line.includes("Fairlead serves on local ports")) process.kill(pidOf(log), "SIGUSR2");
      if (line.includes("SIGUSR2")) process.kill(pidOf(log), "SIGTERM");
    }
    expect(log.at(-1)).toBe("exit 0");
  });
});

const SECCOMP = join(import.meta.dirname, "../../../packages/kernel/test/seccomp-main.ts");

/** As deploy's manifests have it. */
const CAPABILITIES = ["setpriv", "--bounding-set", "-all,+net_admin,+net_raw", "--inh-caps", "-all"] as const;
const RUNTIME_DEFAULT = [process.execPath, "--no-warnings", SECCOMP] as const;

onBundleNode("an agent that may do little", ({ inside, manifest, running, toEnd, served, cleanUp }) => {
  beforeAll(() => manifest("web.json", manifestOf("web", "10.96.0.10", "10.144.0.9")));

  const flagsOf = (mode: string, stateDir = mode) =>
    [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${stateDir}`, "-v=2"] as const;
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
      const log = await served(flagsOf(mode), undefined, [...CAPABILITIES, ...RUNTIME_DEFAULT]);
      expect((await inside().run(list)).stdout).toContain("10.144.0.9");
      expect(complaints(log)).toEqual(complaints(await served(flagsOf(mode), undefined, CAPABILITIES)));
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
      let second: readonly string[] = [];
      const meanwhile = async () => {
        second = await toEnd(["--cleanup", `--state-dir=${mode}`], READ_ONLY_RUN);
      };
      await served(flagsOf(mode), meanwhile, READ_ONLY_RUN);
      expect(second.join("\n")).toMatch(/another agent runs on this node: process \d+ [\s\S]*exit 1$/);
      expect((await inside().run(list)).stdout).toContain("10.144.0.9");
      await cleanUp();
    });

    test("without a state folder either, it serves and says that others are not detected", async () => {
      const log = await served(flagsOf("nftables", ""), undefined, READ_ONLY_RUN);
      expect(complaints(log).join("\n")).toMatch(
        /Cannot detect other agents on this node; serving without the node lock" reason=".*EROFS/,
      );
      await cleanUp();
    });
  });
});

/** The node of the recordings: one interface, its addresses, no default route and no Node object. */
const INTERFACES = [
  ["link", "add", "eth0", "type", "veth", "peer", "name", "peer0"],
  ["address", "add", "10.201.0.10/24", "dev", "eth0"],
  ["address", "add", "fd00:201::10/64", "dev", "eth0", "nodad"],
  ["link", "set", "peer0", "up"],
  ["link", "set", "eth0", "up"],
];

const GOLDEN_FLAGS = [
  "--hostname-override=node-a",
  "--cluster-cidr=10.144.0.0/16,fd00:144::/48",
  "--iptables-min-sync-period=10ms",
  "--iptables-sync-period=200ms",
];

describe.skipIf(reason !== undefined)(
  `the bundle next to kube-proxy${reason === undefined ? "" : ` (${reason})`}`,
  () => {
    test.concurrent.for(["nft", "legacy"] as const)(
      "every golden scenario, one after the other, %s",
      async (variant, { signal, expect }) => {
        await using namespace = await createNamespace();
        const inside = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
        for (const args of INTERFACES) await inside.run(["ip", ...args]);
        // kubelet's chain shows which variant the node has.
        await inside.run([`iptables-${variant}`, "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
        const dir = await mkdtemp(join(tmpdir(), "fairlead-golden-"));
        const manifests = join(dir, "manifests");
        await mkdir(manifests);
        const args = [`--manifests=${manifests}`, `--state-dir=${join(dir, "state")}`, ...GOLDEN_FLAGS];
        await using _agent = follow(signal, (stop) =>
          inside.stream([process.execPath, BUNDLE, ...args], { timeoutMs: 0, signal: stop }),
        );
        for (const scenario of goldenScenarios()) {
          await swap(dir, scenario);
          // Once nothing does so anymore, all is in place.
          await expect.poll(() => differences(inside, variant, scenario), { message: scenario.name }).toEqual([]);
        }
      },
    );
  },
);

async function swap(dir: string, { objects }: GoldenScenario): Promise<void> {
  await writeFile(join(dir, "next.json"), JSON.stringify(objects));
  await rename(join(dir, "next.json"), join(dir, "manifests", "objects.json"));
}

async function differences(inside: Runner, variant: "nft" | "legacy", { iptables, ip6tables }: GoldenScenario) {
  const found: unknown[] = [];
  for (const [family, expected] of [
    ["IPv4", iptables],
    ["IPv6", ip6tables],
  ] as const) {
    if (expected === undefined) continue;
    const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-save`;
    const { stdout } = await inside.run([tool]);
    found.push(...compareRuleSets(parseSave(expected, { family }), parseSave(stdout, { family }), { chains }));
  }
  return found;
}

/** kubelet's chains stay what they were, so a rule that a scenario before this one needed is still there. */
function chains(_table: string, chain: string): boolean {
  return chain !== "KUBE-FIREWALL" && chain !== "KUBE-IPTABLES-HINT";
}
