import { readdirSync, readlinkSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { Followed, follow, until, VirtualClock } from "@fairlead/base/testing";
import { expect } from "vitest";
import { createNodeAddresses, createRunner, lines, type ServiceDeviceChange } from "../src/index.ts";
import { createNamespace, netlinkIn } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

kernelTest("what becomes of kube-ipvs0 is told, its end last", async ({ signal }) => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const { routeListening: listen, route: open } = netlinkIn(namespace);
  const clock = new VirtualClock();
  const addresses = createNodeAddresses(runner, { listen, open, timers: clock });
  const told = new Followed<ServiceDeviceChange>(signal);
  const onServiceDevice = (change: ServiceDeviceChange) => told.add(change);
  await using lists = follow(signal, (stop) => addresses.watch({ signal: stop, onServiceDevice }));
  // It listens before it first waits.
  await clock.timer(() => true);
  await runner.run(["ip", "link", "add", "kube-ipvs0", "type", "veth", "peer", "name", "x"]);
  for (const address of ["10.96.0.1/32", "fd00:96::1/128"])
    await runner.run(["ip", "addr", "add", address, "dev", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "del", "10.96.0.1/32", "dev", "kube-ipvs0"]);
  await runner.run(["ip", "link", "del", "kube-ipvs0"]);
  const isEnd = ({ address, gone }: ServiceDeviceChange) => address === undefined && gone;
  await until(signal, () => told.seen.some(isEnd), clock);
  const changes = told.seen;
  expect(changes.findIndex(isEnd)).toBe(changes.length - 1);
  expect(changes).toEqual(
    expect.arrayContaining([
      { address: "10.96.0.1", gone: false },
      { address: "10.96.0.1", gone: true },
      { address: "fd00:96::1", gone: false },
    ]),
  );
  await lists.stop();
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

kernelTest("one who is killed is told of changes until then, and leaves no process", async ({ signal }) => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const before = processesBeside(namespace.pid);
  const main = fileURLToPath(new URL("address-changes-main.ts", import.meta.url));
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
  await using lists = follow(signal, (stop) => lines(runner.stream(argv, { timeoutMs: 0, signal: stop })));
  await lists.until((seen) => seen.length > 0);
  await runner.run(["ip", "address", "add", "192.0.2.1/32", "dev", "lo"]);
  await lists.until((seen) => seen.at(-1)?.includes("192.0.2.1"));
  const more = processesBeside(namespace.pid).filter((id) => !before.includes(id));
  expect(more).toHaveLength(1);
  process.kill(Number(more[0]), "SIGKILL");
  await expect.poll(() => processesBeside(namespace.pid)).toEqual(before);
});
