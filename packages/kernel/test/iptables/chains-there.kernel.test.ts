import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

const MAIN = fileURLToPath(new URL("chains-there-main.ts", import.meta.url));
const NAT = ["INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"];
const MANGLE = ["FORWARD", "INPUT", "OUTPUT", "POSTROUTING", "PREROUTING"];

for (const variant of ["nft", "legacy"] as const) {
  for (const family of ["IPv4", "IPv6"] as const) {
    kernelTest(`${variant}, ${family}: the chains of a table, without a tool and without making another`, async () => {
      await using namespace = await createNamespace();
      const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, variant, family] as const;
      const { stdout } = await runner.run(argv, { timeoutMs: 0 });
      expect(JSON.parse(stdout)).toEqual({
        before: { nat: NAT, mangle: MANGLE },
        after: { nat: ["A-NAME-OF-AS-MANY-AS-28-BYTE", "INPUT", "MINE", ...NAT.slice(1)], mangle: MANGLE },
        opened: 0,
        has: { MINE: true, OTHER: false },
        elsewhere: false,
        loaded: variant === "legacy" ? ["nat"] : [""],
      });
    });
  }
}
