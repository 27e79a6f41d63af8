import { expect, test } from "vitest";
import { createIpset, createIpvsadm, createLinks, createRunner, type Runner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite, kernelTest, noKernel } from "../kernel-test.ts";
import { checkIpset, checkIpvsadm, IPSET_CASES, IPVSADM_CASES } from "./cases.ts";

async function inNamespace(body: (runner: Runner) => Promise<void>): Promise<void> {
  await using namespace = await createNamespace();
  await body(createRunner({ prefix: namespace.argvPrefix, env: namespace.env }));
}

async function lacks(runner: Runner, ...argv: [string, ...string[]]): Promise<string | undefined> {
  return runner.run(argv).then(
    () => undefined,
    (error: unknown) => String(error),
  );
}

async function lacksIpvs(): Promise<string | undefined> {
  if (noKernel !== undefined) return noKernel;
  await using namespace = await createNamespace();
  return await lacks(createRunner({ prefix: namespace.argvPrefix, env: namespace.env }), "ipvsadm", "--save", "-n");
}

kernelSuite("ipset", () => {
  test.each(IPSET_CASES)("$name", (row) =>
    inNamespace(async (runner) => {
      expect(await lacks(runner, "ipset", "list", "-n")).toBeUndefined();
      await checkIpset(createIpset(runner), row);
    }),
  );
});

// IPVS is a module that few kernels at hand have; the fake runs the same rows everywhere, and ipvs mode as a whole runs
// on a real IPVS in the test ground's User-Mode Linux.
const withoutIpvs = await lacksIpvs();

if (withoutIpvs === undefined) {
  kernelSuite("ipvsadm", () => {
    test.for(IPVSADM_CASES)("$name", (row) => inNamespace((runner) => checkIpvsadm(createIpvsadm(runner), row)));
  });
} else {
  process.stderr.write(`ipvsadm's rows run on the fake alone: ${withoutIpvs}\n`);
}

kernelTest("addresses of a device, and a change that stops half way", () =>
  inNamespace(async (runner) => {
    const device = "a0";
    const links = createLinks(runner);
    const add = (...addresses: readonly string[]) =>
      links.change(addresses.map((address) => ({ kind: "add-address", device, address })));
    expect(await links.addresses("nope")).toBeUndefined();
    await runner.run(["ip", "link", "add", device, "type", "veth", "peer", "name", "a1"]);
    await add("10.96.0.1", "fd00:96::1");
    await expect(add("10.96.0.2", "10.96.0.1", "10.96.0.3")).rejects.toThrow(
      /(?:File exists|already assigned)[\s\S]*Command failed -:2/,
    );
    expect(await links.addresses(device)).toEqual(new Set(["10.96.0.1", "10.96.0.2", "fd00:96::1"]));
  }),
);
