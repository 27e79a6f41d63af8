import { afterAll, beforeAll, describe } from "vitest";
import { createRunner, type IptablesClient, openIptables, type Runner } from "../../src/index.ts";
import { createNamespace, type NetworkNamespace } from "../../src/netns/index.ts";
import { kernelTest, noKernel } from "../kernel-test.ts";
import { cases } from "./cases.ts";
import { checkCase } from "./check-case.ts";

for (const family of ["IPv4", "IPv6"] as const) {
  for (const variant of ["nft", "legacy"] as const) {
    describe(`on the kernel: ${family}, ${variant}`, () => {
      let namespace: NetworkNamespace | undefined;
      let runner: Runner;
      let client: IptablesClient;

      beforeAll(async () => {
        if (noKernel !== undefined) return;
        namespace = await createNamespace();
        runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
        client = await openIptables(runner, { family, variant });
      });
      afterAll(() => namespace?.dispose());

      for (const given of cases) {
        kernelTest(given.name, async () => {
          const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
          await runner.run([tool, "-w", "5"], { input: "*nat\nCOMMIT\n*filter\nCOMMIT\n" });
          await checkCase(client, given);
        });
      }
    });
  }
}
