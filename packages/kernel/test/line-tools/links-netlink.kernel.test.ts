import { fileURLToPath } from "node:url";
import type { LinkCommand } from "@fairlead/netfilter";
import { expect } from "vitest";
import { createLinks, createRunner, type Runner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("links-main.ts", import.meta.url));

const added = (...addresses: readonly string[]) =>
  addresses.map((address): LinkCommand => ({ kind: "add-address", device: "a0", address }));

async function changed(runner: Runner, device: string, commands: readonly LinkCommand[]) {
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, device] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0, input: JSON.stringify(commands) });
  const seen: { readonly refused?: string; readonly addresses?: readonly string[] } = JSON.parse(stdout);
  return seen;
}

async function withDevice(body: (runner: Runner) => Promise<void>): Promise<void> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  await runner.run(["ip", "link", "add", "a0", "type", "veth", "peer", "name", "a1"]);
  await runner.run(["ip", "address", "add", "192.0.2.1/24", "dev", "a1"]);
  await body(runner);
}

kernelTest("addresses of both families come and go by netlink, as `ip` lists them", () =>
  withDevice(async (runner) => {
    const many = Array.from({ length: 250 }, (_, at) => `10.96.1.${at + 1}`);
    const { refused, addresses } = await changed(runner, "a0", [
      ...added("10.96.0.1", "10.96.0.2", "fd00:96::1", "fd00:96:0:0:1::", ...many),
      { kind: "delete-address", device: "a0", address: "10.96.0.2" },
    ]);
    expect(refused).toBeUndefined();
    expect(addresses).toEqual([...many, "10.96.0.1", "fd00:96::1", "fd00:96:0:0:1::"].sort());
    expect(new Set(addresses)).toEqual(await createLinks(runner).addresses("a0"));
  }),
);

kernelTest("an address twice is refused, and what came before it counts", () =>
  withDevice(async (runner) => {
    const { refused, addresses } = await changed(runner, "a0", added("10.96.0.2", "10.96.0.2"));
    expect(refused).toMatch(/ip addr add 10\.96\.0\.2\/32 dev a0: EEXIST/);
    expect(addresses).toEqual(["10.96.0.2"]);
  }),
);

kernelTest("a device goes by netlink, and one that is not there has no addresses", () =>
  withDevice(async (runner) => {
    expect(await changed(runner, "a0", [{ kind: "delete-device", device: "a0" }])).toEqual({});
    const { refused } = await changed(runner, "a0", added("10.96.0.2"));
    expect(refused).toBe("Error: device a0 does not exist");
  }),
);
