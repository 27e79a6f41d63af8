import { afterAll, beforeAll, describe, test } from "vitest";
import { type IptablesClient, openIptables } from "../../src/index.ts";
import { createNamespace, type NetworkNamespace } from "../../src/netns/index.ts";
import { kernelSuite, runnerIn } from "../kernel-test.ts";
import { cases } from "./cases.ts";
import { checkCase, checkLooks } from "./check-case.ts";

kernelSuite("on the kernel", () => {
  describe.for([
    ["IPv4", "nft"],
    ["IPv4", "legacy"],
    ["IPv6", "nft"],
    ["IPv6", "legacy"],
  ] as const)("%s, %s", ([family, variant]) => {
    let namespace: NetworkNamespace | undefined;
    let client: IptablesClient;
    let begin: (text: string) => Promise<unknown>;

    beforeAll(async () => {
      namespace = await createNamespace();
      const runner = runnerIn(namespace);
      client = await openIptables(runner, { family, variant });
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}-restore`;
      // Without --noflush, which empties the tables.
      begin = (text) => runner.run([tool, "-w", "5"], { input: `*nat\nCOMMIT\n*filter\nCOMMIT\n${text}` });
    });
    afterAll(() => namespace?.dispose());

    test.for(cases)("$name", (given) => checkCase(client, given, { begin }));
    test("chains are asked for by name, and one is not there", async () => {
      await begin("");
      await checkLooks(client);
    });
  });
});
