import { expect } from "vitest";
import { createNodeAddresses, createRunner, type NodeAddress, type NodeAddressesOptions } from "../src/index.ts";
import { createNamespace, type NetworkNamespace, netlinkIn } from "../src/netns/index.ts";
import { collect } from "./collect-changes.ts";
import { kernelTest } from "./kernel-test.ts";

kernelTest("changes are seen by ip, those that come together once", () => seesChanges(() => ({})));

kernelTest("and so by netlink", () =>
  seesChanges((namespace) => {
    const { routeListening, route } = netlinkIn(namespace);
    return { listen: routeListening, open: route };
  }),
);

async function seesChanges(waysOf: (namespace: NetworkNamespace) => NodeAddressesOptions): Promise<void> {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const addresses = createNodeAddresses(runner, { settleMs: 100, ...waysOf(namespace) });
  await runner.run(["ip", "link", "add", "eth0", "type", "veth", "peer", "name", "kube-ipvs0"]);
  await runner.run(["ip", "addr", "add", "192.0.2.1/24", "dev", "eth0"]);
  const onEth0 = (list: readonly NodeAddress[]) =>
    list.filter((one) => one.interface !== "lo").map((one) => one.address);
  expect(onEth0(await addresses.list())).toEqual(["192.0.2.1"]);
  const stop = new AbortController();
  const { seen, done } = collect(addresses, stop.signal);
  await expect.poll(() => seen.length).toBe(1);
  await runner.run(["ip", "addr", "add", "10.96.0.1/32", "dev", "kube-ipvs0"]);
  await runner.run(["ip", "-batch", "-"], {
    input: "addr add 192.0.2.2/24 dev eth0\naddr add 192.0.2.3/24 dev eth0\n",
  });
  await expect.poll(() => seen.at(-1)).toEqual(["127.0.0.1", "::1", "192.0.2.1", "192.0.2.2", "192.0.2.3"]);
  expect(seen).toHaveLength(2);
  stop.abort();
  await done;
}
