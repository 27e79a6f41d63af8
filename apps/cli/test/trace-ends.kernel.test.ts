// biome-ignore lint/style/noRestrictedImports: the runner has no process groups, to which a terminal sends its signals
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { Output } from "./support/output.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const trace = [bundle, "trace", "--watch", "--from", "node", "--to", "10.201.0.10:80"];
/** Each has packets of this kind go their way. */
const ASK = `require("net").connect(80, "10.201.0.10").on("error", () => {}).on("close", () => process.exit(0))`;

describe.skipIf(CI === "" && !support.ok)(
  `the rule of trace --watch${support.ok ? "" : ` (${support.reason})`}`,
  () => {
    let namespace: NetworkNamespace;
    let runner: Runner;
    let started: ChildProcess[] = [];

    beforeAll(async () => {
      namespace = await createNamespace();
      runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      await runner.run(["ip", "address", "add", "10.201.0.10/32", "dev", "lo"]);
    });
    afterAll(() => namespace.dispose());
    afterEach(() => {
      for (const child of started) kill(child, "SIGKILL", true);
      started = [];
    });
    beforeEach(async () => {
      for (const tool of ["iptables-nft", "ip6tables-nft"]) await runner.run([tool, "-t", "raw", "-F"]);
    });

    const rules = async (tool = "iptables-nft") => {
      const { stdout } = await runner.run([tool, "-t", "raw", "-S"]);
      return stdout.split("\n").filter((line) => line.startsWith("-A "));
    };
    const asked = () => runner.run([process.execPath, "-e", ASK]);

    /** Starts a program in the namespace, as the leader of its own process group. */
    function start(argv: readonly string[]) {
      const [program = "", ...args] = [...namespace.argvPrefix, ...argv];
      const child = spawn(program, args, { detached: true, stdio: ["ignore", "pipe", "pipe"], env: process.env });
      const output = new Output();
      const errors = new Output();
      child.stdout?.setEncoding("utf8").on("data", (text: string) => output.add(text));
      child.stderr?.setEncoding("utf8").on("data", (text: string) => errors.add(text));
      started.push(child);
      return { child, output, errors, ended: once(child, "close") };
    }

    /** Asks again and again until it is known that packets are followed. */
    async function following({ output, ended }: ReturnType<typeof start>): Promise<void> {
      let reported = false;
      const seen = Promise.race([output.until(/TRACE/), ended]).finally(() => {
        reported = true;
      });
      while (!reported) await asked();
      await seen;
      expect(await rules()).toHaveLength(1);
    }

    const kill = ({ pid = 0, exitCode, signalCode }: ChildProcess, signal: NodeJS.Signals, group: boolean) => {
      if (exitCode === null && signalCode === null) process.kill(group ? -pid : pid, signal);
    };

    test.each<[what: string, signal: NodeJS.Signals, group: boolean]>([
      ["Ctrl-C, which a terminal sends to the whole group", "SIGINT", true],
      ["SIGINT", "SIGINT", false],
      ["SIGTERM", "SIGTERM", false],
      ["SIGHUP, as a terminal that goes sends it", "SIGHUP", true],
    ])("goes with %s", async (_, signal, group) => {
      const watching = start([process.execPath, ...trace]);
      await following(watching);
      kill(watching.child, signal, group);
      expect(await watching.ended).toEqual([0, null]);
      expect(await rules()).toEqual([]);
    });

    test("goes with one Ctrl-C after the other", async () => {
      const watching = start([process.execPath, ...trace]);
      await following(watching);
      // Some of them meet iptables as it takes the rule away.
      for (let times = 0; times < 4; times++) {
        kill(watching.child, "SIGINT", true);
        await Promise.race([rules(), watching.ended]);
      }
      await watching.ended;
      expect(await rules()).toEqual([]);
    });

    test("goes when nobody reads any more (| head -1)", async () => {
      const line = `${[process.execPath, ...trace].map((word) => `'${word}'`).join(" ")} | head -1`;
      const watching = start(["sh", "-c", line]);
      let ended = false;
      watching.ended.then(() => {
        ended = true;
      });
      while (!ended) await asked();
      expect(await rules()).toEqual([]);
    });

    /** Leaves the rule of a process that was killed. */
    async function killed(): Promise<void> {
      const watching = start([process.execPath, ...trace]);
      await following(watching);
      kill(watching.child, "SIGKILL", true);
      await watching.ended;
      expect(await rules()).toHaveLength(1);
    }

    test("of a killed process goes with the next run, and others' rules stay", async () => {
      await killed();
      const others = ["-p tcp -m tcp --dport 81 -j TRACE", '-m comment --comment "fairlead-trace of mine" -j TRACE'];
      await runner.run(["iptables-nft", "-t", "raw", "-A", "OUTPUT", "-p", "tcp", "--dport", "81", "-j", "TRACE"]);
      const comment = ["-m", "comment", "--comment", "fairlead-trace of mine"];
      await runner.run(["iptables-nft", "-t", "raw", "-A", "PREROUTING", ...comment, "-j", "TRACE"]);
      const next = start([process.execPath, ...trace]);
      await next.errors.until(/removed what a killed fairlead left in raw: iptables-nft -t raw/);
      kill(next.child, "SIGTERM", false);
      await next.ended;
      expect((await rules()).map((rule) => rule.replace(/^-A \w+ /, "")).sort()).toEqual(others.sort());
    });

    const doctor = async (): Promise<{ readonly state: string; readonly found: string }> => {
      const line = `'${process.execPath}' '${bundle}' doctor -o json || true`;
      const { stdout } = await runner.run(["sh", "-c", line]);
      const all: readonly { readonly check: string; readonly state: string; readonly found: string }[] =
        JSON.parse(stdout);
      return all.find(({ check }) => check === "rules of fairlead trace") ?? { state: "", found: "" };
    };

    test("of a killed process goes with the doctor", async () => {
      await killed();
      expect(await doctor()).toMatchObject({ found: expect.stringMatching(/^removed .*OUTPUT -d 10\.201\.0\.10\/32/) });
      expect(await rules()).toEqual([]);
      expect(await doctor()).toMatchObject({ state: "good", found: "none" });
    });

    test("of a running process stays", async () => {
      const watching = start([process.execPath, ...trace]);
      await following(watching);
      expect(await doctor()).toMatchObject({
        state: "good",
        found: expect.stringMatching(/^1 of process \d+, which runs/),
      });
      expect(await rules()).toHaveLength(1);
      kill(watching.child, "SIGTERM", false);
      await watching.ended;
      expect(await rules()).toEqual([]);
    });

    test("of a process that cannot be seen from here stays, and the doctor says so", async () => {
      await killed();
      const [left = ""] = await rules();
      const words = left.split(" ").slice(2);
      const foreign = words.map((word) => word.replace(/^(fairlead-trace-\d+-\d+-)\d+/, "$11"));
      await runner.run(["iptables-nft", "-t", "raw", "-F"]);
      await runner.run(["ip6tables-nft", "-t", "raw", "-F"]);
      await runner.run(["iptables-nft", "-t", "raw", "-A", "PREROUTING", ...foreign]);
      expect(await doctor()).toMatchObject({ state: "unknown" });
      expect(await rules()).toHaveLength(1);
    });
  },
);
