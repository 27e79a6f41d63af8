import { afterAll, beforeAll, beforeEach, describe, test } from "vitest";
import { createRunner, type IptablesClient, openIptables, type Runner } from "../../src/index.ts";
import { createNamespace, type NetworkNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { cases } from "./cases.ts";
import { checkAbsentChain, checkCase } from "./check-case.ts";

kernelSuite("on the kernel", () => {
  describe.for([
    ["IPv4", "nft"],
    ["IPv4", "legacy"],
    ["IPv6", "nft"],
    ["IPv6", "legacy"],
  ] as const)("%s, %s", ([family, variant]) => {
    let namespace: NetworkNamespace | undefined;
    let runner: Runner;
    let client: IptablesClient;

    beforeAll(async () => {
      namespace = await createNamespace();
      runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      client = await openIptables(runner, { family, variant });
    });
    afterAll(() => namespace?.dispose());

    beforeEach(async () => {
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
      await runner.run([tool, "-w", "5"], { input: "*nat\nCOMMIT\n*filter\nCOMMIT\n" });
    });

    test.for(cases)("$name", (given) => checkCase(client, given));
    test("chains are asked for by name, and one is not there", () => checkAbsentChain(client));
  });
});
