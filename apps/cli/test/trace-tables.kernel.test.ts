// biome-ignore lint/style/noRestrictedImports: signals are sent to it, and what it prints is read as it comes
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createRunner, type Runner } from "@fairlead/kernel";
import { createNamespace, type NetworkNamespace, namespaceSupport } from "@fairlead/kernel/netns";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { Output } from "./support/output.ts";

const { CI = "" } = process.env;
const support = await namespaceSupport();
const bundle = join(import.meta.dirname, "..", "dist", "main.js");
const ASK = (to: string) =>
  `require("net").connect(80, "${to}").on("error", () => {}).on("close", () => process.exit(0))`;

/** What a proxy may have, and another program alongside it. */
const TABLES = `
table ip kube-proxy {
  map service-ips {
    type ipv4_addr . inet_proto . inet_service : verdict
    elements = { 10.96.1.10 . tcp . 80 : goto endpoint }
  }
  chain endpoint {
    meta l4proto tcp dnat to 10.201.0.10:8080
  }
  chain services {
    ip daddr . meta l4proto . th dport vmap @service-ips
  }
  chain nat-output {
    type nat hook output priority -100; policy accept;
    jump services
  }
}
table inet others {
  chain watches {
    type filter hook output priority 0; policy accept;
    tcp dport { 81, 8080 } limit rate 1000/second counter comment "others"
  }
}
`;

describe.skipIf(CI === "" && !support.ok)(
  `trace --watch in tables of nftables${support.ok ? "" : ` (${support.reason})`}`,
  () => {
    let namespace: NetworkNamespace;
    let runner: Runner;
    let started: ChildProcess[] = [];

    beforeAll(async () => {
      namespace = await createNamespace();
      runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      for (const address of ["10.201.0.10/32", "10.96.1.10/32", "10.96.1.11/32"])
        await runner.run(["ip", "address", "add", address, "dev", "lo"]);
      await runner.run(["nft", "-f", "-"], { input: TABLES });
    });
    afterAll(() => namespace.dispose());
    afterEach(() => {
      for (const child of started) if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
      started = [];
    });

    const ruleset = async () => (await runner.run(["nft", "-s", "list", "ruleset"])).stdout;
    const ask = (to: string) => runner.run([process.execPath, "-e", ASK(to)]);

    async function watching() {
      const [program = "", ...args] = [
        ...namespace.argvPrefix,
        process.execPath,
        ...[bundle, "trace", "--watch", "--from", "node", "--to", "10.96.1.10:80"],
      ];
      const child = spawn(program, args, { stdio: ["ignore", "pipe", "pipe"], env: process.env });
      const [output, errors] = [new Output(), new Output()];
      child.stdout.setEncoding("utf8").on("data", (text: string) => output.add(text));
      child.stderr.setEncoding("utf8").on("data", (text: string) => errors.add(text));
      started.push(child);
      const ended = once(child, "close");
      await errors.until(/following packets through the tables of nftables/);
      return { child, output, errors, ended };
    }

    test("says that connections may take the fast path", async () => {
      const chain = "chain ip kube-proxy fast-path-forward";
      const without = await watching();
      without.child.kill("SIGINT");
      await without.ended;
      expect(without.errors.text).not.toContain("fast path");
      await runner.run(["nft", `add ${chain}`]);
      const { child, errors, ended } = await watching();
      child.kill("SIGINT");
      await ended;
      expect(errors.text).toContain("their first packets are shown, later ones meet no rules");
      await runner.run(["nft", `delete ${chain}`]);
    });

    test("tells each step of the packets that are asked for, and of no other", async () => {
      const { child, output, ended } = await watching();
      await ask("10.96.1.11");
      await ask("10.96.1.10");
      await output.until(/inet others watches: policy → accept/);
      const { text } = output;
      const steps = text.replace(/^( TRACE|PACKET) [\da-f]{8}/gm, "$1").replace(/:\d{5} →/g, ":PORT →");
      expect(steps.split("\n").slice(0, 8)).toEqual([
        "PACKET, out by lo: tcp 10.96.1.10:PORT → 10.96.1.10:80",
        " TRACE OUTPUT ip kube-proxy nat-output: jump services → jump services",
        " TRACE OUTPUT ip kube-proxy services: ip daddr . meta l4proto . th dport vmap @service-ips → goto endpoint",
        " TRACE OUTPUT ip kube-proxy endpoint: meta l4proto tcp dnat to 10.201.0.10:8080 → accept",
        "PACKET, out by lo: tcp 10.96.1.10:PORT → 10.201.0.10:8080",
        expect.stringMatching(/^ TRACE OUTPUT inet others watches: .*dport.* comment "others" → continue$/),
        " TRACE OUTPUT inet others watches: policy → accept",
        expect.anything(),
      ]);
      expect(text).not.toContain("10.96.1.11");
      child.kill("SIGINT");
      expect(await ended).toEqual([0, null]);
    });

    test.each<NodeJS.Signals>(["SIGINT", "SIGTERM", "SIGKILL"])(
      "leaves nothing behind after %s, and what others have as it was",
      async (signal) => {
        const before = await ruleset();
        const { child, ended } = await watching();
        expect(await ruleset()).toContain("meta nftrace set 1");
        child.kill(signal);
        await ended;
        expect(await ruleset()).toBe(before);
      },
    );
  },
);
