import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { readTables } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import { readArchive } from "../src/sysdump/archive.ts";
import { ownFolder } from "./support/files.ts";
import { loadTables } from "./support/load-tables.ts";
import { CLUSTER, stdin } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const SECRET = "Hunter2_Passw0rd";

const planOf = async (mode: string, family: string) =>
  (await fairlead(["plan", "-f", "-", "--mode", mode, "--family", family, "--without-counters", ...CLUSTER], { stdin }))
    .out;

test.skipIf(CI === "" && !support.ok).each([
  [
    "iptables",
    async (runner: Runner) => {
      for (const [family, tool] of [
        ["ipv4", "iptables-nft-restore"],
        ["ipv6", "ip6tables-nft-restore"],
      ] as const) {
        await runner.run([tool, "--noflush"], { input: await planOf("iptables", family) });
      }
      const rule = ["-m", "comment", "--comment", SECRET, "-j", "ACCEPT"];
      await runner.run(["iptables-nft", "-t", "mangle", "-N", "KUBE-IPTABLES-HINT"]);
      await runner.run(["iptables-nft", "-t", "mangle", "-A", "INPUT", ...rule]);
    },
  ],
  [
    "nftables",
    async (runner: Runner, namespace: Parameters<typeof loadTables>[0]) => {
      for (const family of ["ipv4", "ipv6"]) {
        await loadTables(namespace, readTables(await planOf("nftables", family)));
      }
      const input = `table ip mine { comment "${SECRET}"; chain c { tcp dport 1 accept comment "${SECRET}"; }; }`;
      await runner.run(["nft", "-f", "-"], { input });
    },
  ],
])(`an archive of a real kernel explains and verifies as that kernel does, %s mode`, async (mode, program) => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  await runner.run(["ip", "address", "add", "10.201.0.10/24", "dev", "lo"]);
  await program(runner, namespace);
  const folder = ownFolder();
  const file = join(folder, "dump.tar.gz");
  const here = ["--live", "-f", "-", "--mode", mode, ...CLUSTER];
  const live = (command: readonly string[]) => fairlead([...command, ...here], { stdin, runner });
  const made = await live(["sysdump", "--output-file", file, "--node-timeout", "600"]);
  expect(made.out).toContain("1 of 1 nodes answered");
  for (const command of [["explain", "lbs"], ["explain", "lbs", "-o", "json"], ["verify"]]) {
    const then = await live(command);
    const later = await fairlead([...command, "--sysdump", file]);
    expect(then.out).not.toBe("");
    expect(later).toMatchObject({ out: then.out, code: then.code });
  }
  for (const [path, text] of await readArchive(file, await readFile(file))) {
    expect(`${path}: ${text}`).not.toContain(SECRET);
  }
});
