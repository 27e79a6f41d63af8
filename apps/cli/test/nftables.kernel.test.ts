import { join } from "node:path";
import { CommandError, createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { readTables } from "@fairlead/netfilter/nft";
import { expect, test } from "vitest";
import type { Context } from "../src/frame/context.ts";
import { stateIn } from "../src/node/read-state.ts";
import { fileOf } from "./support/files.ts";
import { loadTables } from "./support/load-tables.ts";
import { agent, stdin } from "./support/recorded.ts";
import { fairlead } from "./support/run.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();

const BUNDLE = join(import.meta.dirname, "..", "dist", "main.js");

/** As an agent's pod: there is no nft, and the built `fairlead` prints what it reads by netlink. */
function withoutNft(inside: Runner): Runner {
  return {
    run: async (argv, options) => {
      const [program, ...args] = argv;
      if (program === "nft") throw new CommandError({ argv, reason: "not-found" });
      return inside.run(program === "fairlead" ? [process.execPath, BUNDLE, ...args] : argv, options);
    },
    stream: (argv, options) => inside.stream(argv, options),
  };
}

test.skipIf(CI === "" && !support.ok).each([
  ["by nft", (inside: Runner) => inside],
  ["by netlink, without nft", withoutNft],
])(`of a kernel, %s${support.ok ? "" : ` (${support.reason})`}`, async (_how, reader) => {
  await using namespace: NetworkNamespace = await createNamespace();
  const runner: Runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const live = async () => {
    const stateHere: Context["stateHere"] = (parts) => stateIn(reader(runner), parts);
    const { out, code } = await fairlead(["verify", ...agent], { stdin, stateHere });
    return { out, code };
  };
  const missing = await live();
  expect(missing.out).toContain("- table ip kube-proxy: the table");
  for (const family of ["ipv4", "ipv6"]) {
    const { out } = await fairlead(["plan", ...agent, "--family", family], { stdin });
    await loadTables(namespace, readTables(out));
  }
  expect(await live()).toEqual({ out: "OK: nothing differs (IPv4, IPv6)\n", code: 0 });
  const { stdout: listing } = await runner.run(["nft", "list", "ruleset"]);
  const rules = ["--rules", fileOf(listing, "ruleset.nft"), "--node-address", "10.201.0.10"];
  const traced = await fairlead(["trace", "--from", "198.51.100.7", "--to", "203.0.113.10:80", ...rules]);
  expect(traced.out).toMatch(/→ 10\.144\.1\.5:8080.*masqueraded/);
  await runner.run(["nft", "delete element ip kube-proxy service-ips { 10.96.1.10 . tcp . 80 }"]);
  const damaged = await live();
  expect(damaged.out).toMatch(/^default\/lbs IPv4: different\n {2}- map service-ips: 10\.96\.1\.10 \. tcp \. 80/);
  expect(damaged.code).toBe(1);
  await runner.run(["nft", "add element ip kube-proxy service-ips { 10.96.1.10 . tcp . 80 : goto endpoints-3 }"]);
  expect((await live()).out).toBe("OK: nothing differs (IPv4, IPv6)\n");
  await runner.run(["nft", "-f", "-"], {
    input: "table ip mine { chain c { type filter hook prerouting priority -200; tcp dport 80 drop; }; }",
  });
  expect((await live()).out).toMatch(/~ traffic tcp .*10\.96\.1\.10:80: drop, expected/);
});
