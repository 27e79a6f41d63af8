import { lines } from "@fairlead/kernel";
import { endpointSlice, service } from "@fairlead/testkit";
import { beforeAll, expect, test } from "vitest";
import { descriptorLimit, descriptorShares } from "../src/descriptors.ts";
import { BUNDLE, onBundleNode } from "./support/bundle-node.ts";

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

const ASK_LIVEZ = `fetch("http://127.0.0.1:10256/livez").then(({ status }) => console.log(status));`;

test.each([
  [160, { clients: 20, relayed: 60 }],
  [1_024, { clients: 192, relayed: 576 }],
  [1_048_576, { clients: 1_024, relayed: 1_047_296 }],
  [Number.POSITIVE_INFINITY, { clients: 1_024, relayed: Number.POSITIVE_INFINITY }],
])("of %i descriptors syncs keep their part", (limit, shares) => {
  expect(descriptorShares(limit)).toEqual(shares);
});

test("the limit is read of this process; without /proc there is none", () => {
  expect(descriptorLimit()).toBeGreaterThan(0);
  expect(descriptorLimit("/does/not/exist")).toBe(Number.POSITIVE_INFINITY);
});

onBundleNode("clients and descriptors", ({ dir, inside, manifest }) => {
  beforeAll(() => write("first", "10.96.0.10"));

  const stream = (...argv: readonly [string, ...string[]]) => lines(inside().stream(argv, { timeoutMs: 0 }));

  /** Whoever stops reading ends it. */
  function limitedTo(files: number, flags: readonly string[]) {
    const script = `cd "$1" && shift && ulimit -n ${files} && exec "$@" 2>&1`;
    return stream("sh", "-c", script, "sh", dir(), process.execPath, BUNDLE, ...flags);
  }

  async function write(name: string, clusterIP: string): Promise<void> {
    const items = [
      service(name, { clusterIPs: [clusterIP], ports: [{ name: "http", port: 80 }] }),
      endpointSlice(name, {
        service: name,
        family: "IPv4",
        ports: [{ name: "http", port: 80 }],
        endpoints: [{ address: "10.144.0.9" }],
      }),
    ];
    const list = { apiVersion: "v1", kind: "List", items };
    await manifest(`${name}.json`, JSON.stringify(list));
  }

  test("clients that hold every connection they can get keep no sync from its tools", async () => {
    const flags = ["--manifests=manifests", "--state-dir=state", "-v=2"] as const;
    const rules = async () => (await inside().run(["iptables-save", "-t", "nat"])).stdout;
    const log: string[] = [];
    let attacking: AsyncGenerator<string> | undefined;
    for await (const line of limitedTo(160, flags)) {
      log.push(line);
      if (line.includes('"Rules are in place" ipFamily="IPv4"')) {
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
    ["iptables", 64, ["iptables-save", "-t", "nat"]],
    ["nftables", 40, ["nft", "list", "ruleset"]],
  ] as const)("%s mode serves where %i files may be open", async (mode, files, list) => {
    const flags = [`--proxy-mode=${mode}`, "--manifests=manifests", `--state-dir=${mode}`, "-v=2"] as const;
    const log: string[] = [];
    let livez = 0;
    for await (const line of limitedTo(files, flags)) {
      log.push(line);
      if (line.includes("EMFILE")) break;
      if (!line.includes('"Rules are in place" ipFamily="IPv4"')) continue;
      livez = Number((await inside().run([process.execPath, "-e", ASK_LIVEZ])).stdout);
      break;
    }
    expect(livez, log.join("\n")).toBe(200);
    expect((await inside().run(list)).stdout).toContain("10.96.0.10");
    await inside().run([process.execPath, BUNDLE, "--cleanup", "--state-dir="]);
  });
});
