import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { expect, test } from "vitest";
import { whyNoKernel } from "./support/real-kernel.ts";

const program = fileURLToPath(new URL("support/loopback-main.ts", import.meta.url));
const missing = await whyNoKernel();
const NODE = ["192.0.2.10/24", "10.144.154.71/32", "2001:db8::10/64", "fd00:144::71/128"];

test.skipIf(missing !== undefined)(
  `node ports on loopback addresses, by real packets${missing === undefined ? "" : `: ${missing}`}`,
  async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const address of NODE) await runner.run(["ip", "address", "add", address, "dev", "lo", "nodad"]);
    const node = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", program] as const;
    const { stdout } = await runner.run([...node], { timeoutMs: 0 });
    const each = (line: (family: string) => string) => ["IPv4", "IPv6"].map(line);
    expect(stdout.trimEnd().split("\n")).toEqual([
      ...each(
        (family) =>
          `off ${family}: TCP ECONNREFUSED, at the node's address pod, UDP another program, counted undefined to undefined`,
      ),
      ...each((family) => `  ended, ${family}: TCP ECONNREFUSED`),
      ...each(
        (family) =>
          `gate only ${family}: TCP ECONNREFUSED, at the node's address pod, UDP ECONNREFUSED, counted 0 to 1`,
      ),
      ...each((family) => `  ended, ${family}: TCP ECONNREFUSED`),
      ...each((family) => `localhost ${family}: TCP pod, at the node's address pod, UDP ECONNREFUSED, counted 0 to 1`),
      ...each((family) => `  ended, ${family}: TCP ECONNREFUSED`),
    ]);
    expect((await runner.run(["nft", "list", "ruleset"])).stdout).toBe("");
  },
);
