import { errorCode } from "@fairlead/base";
import { endpointSlice, service } from "@fairlead/testkit";
import { beforeAll, expect, test } from "vitest";
import { BUNDLE, onBundleNode } from "./support/bundle-node.ts";

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

onBundleNode("SIGUSR2, whenever it comes", ({ inside, manifest, running }) => {
  const write = (name: string, address: string) =>
    manifest(`${name}.json`, JSON.stringify({ kind: "List", items: objects(name, address) }));

  beforeAll(() => write("first", "10.144.0.9"));

  const pidOf = (log: readonly string[]) => Number(/ pid=(\d+)/.exec(log.join("\n"))?.[1]);

  function signals(pid: number): void {
    for (let n = 0; n < OFTEN; n++) process.kill(pid, "SIGUSR2");
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
    ["iptables", ["iptables-save", "-t", "nat"], ["iptables", "-t", "nat", "-F", "KUBE-SERVICES"]],
    ["nftables", ["nft", "list", "ruleset"], ["nft", "flush", "ruleset"]],
  ] as const)("%s mode: from the first line on, during syncs, and while it stops", async (mode, list, damage) => {
    const log: string[] = [];
    const rules = async () => (await inside().run(list)).stdout;
    for await (const line of running([
      `--proxy-mode=${mode}`,
      "--manifests=manifests",
      `--state-dir=${mode}`,
      "-v=2",
    ])) {
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
      lateSignals(pidOf(log));
    }
    expect(log.at(-1)).toBe("exit 0");
    await inside().run([process.execPath, BUNDLE, "--cleanup", "--state-dir="]);
  });

  test.each([
    [
      "a proxy on local ports",
      "Fairlead serves on local ports",
      ["--proxy-mode=userspace", "--userspace-only", "--manifests=manifests"],
    ],
  ])("%s has nothing to write, and goes on", async (_what, starts, flags) => {
    const log: string[] = [];
    for await (const line of running([...flags, "--state-dir=", "-v=2"])) {
      log.push(line);
      if (line.includes(starts)) process.kill(pidOf(log), "SIGUSR2");
      if (line.includes("SIGUSR2")) process.kill(pidOf(log), "SIGTERM");
    }
    expect(log.at(-1)).toBe("exit 0");
  });
});
