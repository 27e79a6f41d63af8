import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner, lines, type NetworkDevice } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

const MAIN = fileURLToPath(new URL("devices-main.ts", import.meta.url));

const BEFORE = [
  "link set lo up",
  "link add br0 type bridge",
  "link add cali1 type veth peer name peer1",
  "link add up0 type veth peer name peer2",
  "link set cali1 up",
  "link set peer1 up",
  "link set up0 up",
  "link set peer2 up",
  "address add 10.144.1.1/24 dev br0",
  "address add 172.30.0.1/24 dev up0",
  "route add default via 172.30.0.2 dev up0",
  "route add 10.144.2.7/32 dev cali1",
  "route add fd00:144::7/128 dev cali1",
  "route add 10.99.0.0/16 dev up0 table 100",
];

kernelTest(
  "devices are followed with their routes and addresses, which may come later, and as they go and come back",
  async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    await runner.run(["ip", "-batch", "-"], { input: `${BEFORE.join("\n")}\n` });
    const stop = new AbortController();
    const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN] as const;
    const seen: NetworkDevice[][] = [];
    const followed = (async () => {
      for await (const line of lines(runner.stream(argv, { timeoutMs: 0, signal: stop.signal }))) {
        seen.push(JSON.parse(line));
      }
    })().catch((error: unknown) => {
      if (!stop.signal.aborted) throw error;
    });
    const last = (name: string) => seen.at(-1)?.find((device) => device.name === name);
    await expect.poll(() => seen.length).toBeGreaterThan(0);
    expect(last("cali1")).toMatchObject({
      kind: "veth",
      routes: expect.arrayContaining(["10.144.2.7/32", "fd00:144::7/128"]),
    });
    expect(last("br0")).toMatchObject({ kind: "bridge", addresses: expect.arrayContaining(["10.144.1.1"]) });
    expect(last("up0")?.routes).toEqual(expect.arrayContaining(["0.0.0.0/0", "172.30.0.0/24"]));
    expect(last("up0")?.routes).not.toContain("10.99.0.0/16");
    await runner.run(["ip", "route", "add", "10.144.2.8/32", "dev", "cali1"]);
    await expect.poll(() => last("cali1")?.routes).toContain("10.144.2.8/32");
    const index = last("cali1")?.index;
    const before = seen.length;
    const again = [
      "link delete cali1",
      `link add cali1 index ${index} type veth peer name peer1`,
      "link add end type bridge",
    ];
    await runner.run(["ip", "-batch", "-"], { input: `${again.join("\n")}\n` });
    await expect.poll(() => last("end")).toBeDefined();
    expect(last("cali1")?.index).toBe(index);
    const names = (devices: readonly NetworkDevice[]) => devices.map(({ name }) => name);
    expect(seen.slice(before).map(names)).toContainEqual(expect.not.arrayContaining(["cali1"]));
    stop.abort();
    await followed;
  },
);
