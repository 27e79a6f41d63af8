import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createNodeAddresses, createRunner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

const MAIN = fileURLToPath(new URL("addresses-main.ts", import.meta.url));

/** Devices that are up and down, other scopes, the other end of a tunnel, and what kube-ipvs0 has. */
const COMMANDS = [
  "link set lo up",
  "link add a0 type veth peer name a1",
  "link add kube-ipvs0 type veth peer name b1",
  // Otherwise link-local addresses come some time after the devices are up.
  "link set a0 addrgenmode none",
  "link set a1 addrgenmode none",
  "link set a0 up",
  "link set a1 up",
  "address add 192.0.2.1/24 dev a0",
  "address add 192.0.2.2/32 dev a0",
  "address add 192.0.2.3 peer 198.51.100.3/32 dev a0",
  "address add 2001:db8::1/64 dev a0 nodad",
  "address add fe80::1/64 dev a0 nodad",
  "address add 192.0.2.9/32 scope host dev a1",
  "address add 192.0.2.10/32 scope 77 dev a1",
  "address add 192.0.2.77/24 dev b1",
  "address add 10.96.0.1/32 dev kube-ipvs0",
].join("\n");

kernelTest("the node's addresses by netlink are those that `ip` lists, in its order", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  await runner.run(["ip", "-batch", "-"], { input: `${COMMANDS}\n` });
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0 });
  const listed = await createNodeAddresses(runner).list();
  expect(JSON.parse(stdout)).toEqual(listed);
  expect(listed.filter(({ family }) => family === "IPv4").map(({ address }) => address)).toContain("192.0.2.3");
  expect(new Set(listed.map(({ up }) => up))).toEqual(new Set([true, false]));
});
