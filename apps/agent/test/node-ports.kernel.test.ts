import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { describe, expect, test } from "vitest";
import { whyNoKernel } from "./support/bundle-node.ts";

const PROGRAM = fileURLToPath(new URL("support/node-ports-main.ts", import.meta.url));
const missing = await whyNoKernel();

const NEIGHBORS = ["203.0.113.9", "2001:db8:9::9"];

/** Runs the program on a node with these addresses. @returns its lines */
async function run(what: "loopback" | "udp", addresses: readonly string[]) {
  const namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  for (const address of addresses) await runner.run(["ip", "address", "add", address, "dev", "lo", "nodad"]);
  await runner.run(["sh", "-c", "echo 1 >/proc/sys/net/ipv6/ip_nonlocal_bind"]);
  for (const address of NEIGHBORS) await runner.run(["ip", "route", "add", "local", address, "dev", "lo"]);
  const node = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", PROGRAM, what] as const;
  const { stdout } = await runner.run([...node], { timeoutMs: 0 });
  const rules = (await runner.run(["nft", "list", "ruleset"])).stdout;
  await namespace.dispose();
  return { lines: stdout.trimEnd().split("\n"), rules };
}

describe.skipIf(missing !== undefined)(
  `node ports, by real packets${missing === undefined ? "" : `: ${missing}`}`,
  () => {
    test("on loopback addresses", async () => {
      const node = ["192.0.2.10/24", "10.144.154.71/32", "2001:db8::10/64", "fd00:144::71/128"];
      const { lines, rules } = await run("loopback", node);
      const each = (...of: ((family: string) => string)[]) =>
        ["IPv4", "IPv6"].flatMap((family) => of.map((line) => line(family)));
      const from = (own: string, neighbor: string) => () =>
        `  TCP from the node's address ${own}, from a neighbor's ${neighbor}`;
      const ended = each((family) => `  ended, ${family}: TCP ECONNREFUSED`);
      const atNode = "at the node's address pod";
      expect(lines).toEqual([
        ...each(
          (family) => `off ${family}: TCP ECONNREFUSED, ${atNode}, UDP another program, counted undefined to undefined`,
          from("ECONNREFUSED", "ECONNREFUSED"),
        ),
        ...ended,
        ...each(
          (family) => `gate only ${family}: TCP ECONNREFUSED, ${atNode}, UDP ECONNREFUSED, counted 0 to 1`,
          from("ECONNREFUSED", "ECONNREFUSED"),
        ),
        ...ended,
        ...each(
          (family) => `localhost ${family}: TCP pod, ${atNode}, UDP ECONNREFUSED, counted 0 to 1`,
          // As a neighbor's packets come in where route_localnet is set.
          from("pod", "ECONNRESET"),
        ),
        ...ended,
      ]);
      expect(rules).toBe("");
    });

    test("a UDP client of one that is scaled to zero", async () => {
      const { lines } = await run("udp", ["192.0.2.10/24", "10.144.154.71/32", "10.144.154.72/32"]);
      expect(lines).toEqual([
        "first: 10.144.154.71; 192.0.2.10 answered by 10.144.154.71",
        "scaled to zero: -; ",
        "back: 10.144.154.72; 192.0.2.10 answered by 10.144.154.72",
      ]);
    });
  },
);
