import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { expect, test } from "vitest";
import { whyNoKernel } from "./support/real-kernel.ts";

const program = fileURLToPath(new URL("support/udp-node-port-main.ts", import.meta.url));
const missing = await whyNoKernel();

test.skipIf(missing !== undefined)(
  `a UDP client of a node port that is scaled to zero, by real packets${missing === undefined ? "" : `: ${missing}`}`,
  async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const address of ["192.0.2.10/24", "10.144.154.71/32", "10.144.154.72/32"])
      await runner.run(["ip", "address", "add", address, "dev", "lo"]);
    const { stdout } = await runner.run([process.execPath, "--no-warnings", "--conditions=@fairlead/source", program], {
      timeoutMs: 0,
    });
    expect(stdout.split("\n").slice(0, -1)).toEqual([
      "first: 10.144.154.71; 192.0.2.10 answered by 10.144.154.71",
      "scaled to zero: -; ",
      "back: 10.144.154.72; 192.0.2.10 answered by 10.144.154.72",
    ]);
  },
);
