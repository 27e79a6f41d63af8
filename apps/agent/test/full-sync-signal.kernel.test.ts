import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRunner, lines } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace } from "@fairlead/kernel/netns";
import { endpointSlice, service } from "@fairlead/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { whyNoKernel } from "./support/real-kernel.ts";

const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const reason = await whyNoKernel();
const OFTEN = 200;

function objects(name: string, address: string) {
  return [
    service(name, { clusterIPs: [`10.96.0.${address.split(".").at(-1)}`], ports: [{ name: "http", port: 80 }] }),
    endpointSlice(name, {
      service: name,
      family: "IPv4",
      ports: [{ name: "http", port: 80 }],
      endpoints: [{ address }],
    }),
  ];
}

describe.skipIf(reason !== undefined)(`SIGUSR2, whenever it comes${reason === undefined ? "" : ` (${reason})`}`, () => {
  let dir = "";
  let namespace: NetworkNamespace;

  beforeAll(async () => {
    namespace = await createNamespace();
    dir = await mkdtemp(join(tmpdir(), "fairlead-signals-"));
    await mkdir(join(dir, "manifests"));
    await write("first", "10.144.0.9");
  });
  afterAll(async () => {
    await namespace.dispose();
    await rm(dir, { recursive: true });
  });

  const write = (name: string, address: string) =>
    writeFile(join(dir, "manifests", `${name}.json`), JSON.stringify({ kind: "List", items: objects(name, address) }));

  const inside = () => createRunner({ prefix: namespace.argvPrefix, env: namespace.env });

  /** The lines of a bundle's run as they come, its exit code the last of them: `exit 0`. */
  function running(...flags: readonly string[]) {
    const script = 'cd "$1" && shift && "$@" 2>&1; echo "exit $?"';
    return lines(
      inside().stream(["sh", "-c", script, "sh", dir, process.execPath, bundle, ...flags], { timeoutMs: 0 }),
    );
  }

  const pidOf = (log: readonly string[]) => Number(/ pid=(\d+)/.exec(log.join("\n"))?.[1]);

  function signals(pid: number): void {
    for (let n = 0; n < OFTEN; n++) process.kill(pid, "SIGUSR2");
  }

  test.each([
    ["iptables", ["iptables-save", "-t", "nat"], ["iptables", "-t", "nat", "-F", "KUBE-SERVICES"]],
    ["nftables", ["nft", "list", "ruleset"], ["nft", "flush", "ruleset"]],
  ] as const)("%s mode: from the first line on, during syncs, and while it stops", async (mode, list, damage) => {
    const log: string[] = [];
    const rules = async () => (await inside().run(list)).stdout;
    for await (const line of running(`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${mode}`, "-v=2")) {
      log.push(line);
      if (line.includes('"Fairlead starts"')) signals(pidOf(log));
      if (!line.includes('"Rules are in place" ipFamily="IPv4"') || log.some((one) => one.includes("to stop")))
        continue;
      signals(pidOf(log));
      await write(`more-${mode}`, mode === "iptables" ? "10.144.0.10" : "10.144.0.11");
      await inside().run(damage);
      signals(pidOf(log));
      await expect.poll(rules).toContain("10.144.0.9");
      await expect.poll(rules).toMatch(/10\.144\.0\.1[01]/);
      signals(pidOf(log));
      process.kill(pidOf(log), "SIGTERM");
      signals(pidOf(log));
    }
    expect(log.at(-1)).toBe("exit 0");
    await inside().run([process.execPath, bundle, "--cleanup", "--state-dir="]);
  });

  test.each([
    ["a shadow", "Fairlead runs as a shadow", ["--shadow", "--manifests=manifests"]],
    [
      "a proxy on local ports",
      "Fairlead serves on local ports",
      ["--proxy-mode=userspace", "--userspace-only", "--manifests=manifests"],
    ],
  ])("%s has nothing to write, and goes on", async (_what, starts, flags) => {
    const log: string[] = [];
    for await (const line of running(...flags, "--state-dir=", "-v=2")) {
      log.push(line);
      if (line.includes(starts)) process.kill(pidOf(log), "SIGUSR2");
      if (line.includes("SIGUSR2")) process.kill(pidOf(log), "SIGTERM");
    }
    expect(log.at(-1)).toBe("exit 0");
  });
});
