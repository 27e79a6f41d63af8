import { readdirSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createNodeAddresses, createRunner, type ServiceDeviceChange } from "../src/index.ts";
import { createNamespace, netlinkIn } from "../src/netns/index.ts";
import { lines } from "../src/runner/text.ts";
import { kernelTest } from "./kernel-test.ts";

kernelTest("what becomes of kube-ipvs0 is told, its end last", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const { routeListening: listen, route: open } = netlinkIn(namespace);
  const addresses = createNodeAddresses(runner, { listen, open });
  const stop = new AbortController();
  const told: ServiceDeviceChange[] = [];
  const done = (async () => {
    const onServiceDevice = (change: ServiceDeviceChange) => void told.push(change);
    for await (const _ of addresses.watch({ signal: stop.signal, onServiceDevice }));
  })();
  const added = () => runner.run(["ip", "link", "add", "kube-ipvs0", "type", "veth", "peer", "name", "x"]);
  // Until it listens nothing is told: the device comes again until it is.
  await expect
    .poll(
      async () => {
        await added();
        await runner.run(["ip", "link", "del", "kube-ipvs0"]);
        return told.length;
      },
      { interval: 300 },
    )
    .toBeGreaterThan(0);
  await expect.poll(() => told.at(-1)).toEqual({ gone: true });
  told.length = 0;
  await added();
  for (const address of ["10.96.0.1/32", "fd00:96::1/128"])
    await runner.run(["ip", "addr", "add", address, "dev", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "del", "10.96.0.1/32", "dev", "kube-ipvs0"]);
  await runner.run(["ip", "link", "del", "kube-ipvs0"]);
  const ended = () => told.findLast(({ address }) => address === undefined);
  await expect.poll(ended).toEqual({ gone: true });
  stop.abort();
  await done;
  expect(told.filter(({ address }) => address !== undefined)).toEqual(
    expect.arrayContaining([
      { address: "10.96.0.1", gone: false },
      { address: "10.96.0.1", gone: true },
      { address: "fd00:96::1", gone: false },
    ]),
  );
});

/** Processes in the network namespace of a process. */
function processesBeside(pid: number): readonly string[] {
  const namespaceOf = (id: string) => {
    try {
      return readlinkSync(`/proc/${id}/ns/net`);
    } catch {
      return undefined;
    }
  };
  const own = namespaceOf(String(pid));
  return readdirSync("/proc").filter((name) => /^\d+$/.test(name) && namespaceOf(name) === own);
}

kernelTest("one who is killed is told of changes until then, and leaves no process", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const before = processesBeside(namespace.pid);
  const main = fileURLToPath(new URL("address-changes-main.ts", import.meta.url));
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
  const lists: string[] = [];
  const child = (async () => {
    for await (const line of lines(runner.stream(argv, { timeoutMs: 0 }))) lists.push(line);
  })();
  const ended = child.catch(() => {});
  await expect.poll(() => lists.length).toBe(1);
  await runner.run(["ip", "address", "add", "192.0.2.1/32", "dev", "lo"]);
  await expect.poll(() => lists.at(-1)).toContain("192.0.2.1");
  const more = processesBeside(namespace.pid).filter((id) => !before.includes(id));
  expect(more).toHaveLength(1);
  process.kill(Number(more[0]), "SIGKILL");
  await ended;
  await expect.poll(() => processesBeside(namespace.pid)).toEqual(before);
});
