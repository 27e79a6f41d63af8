import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

/**
 * ctnetlink_dump_table of net/netfilter/nf_conntrack_netlink.c counts no changes (cb->seq), so its listings need no
 * second reading: what stays is in them, whatever comes and goes meanwhile.
 */
kernelTest("a listing of connections is never interrupted, and has all that stay", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const main = fileURLToPath(new URL("changing-main.ts", import.meta.url));
  const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", main] as const;
  const { stdout } = await runner.run(argv, { timeoutMs: 0 });
  const { parts, interrupted, steady } = JSON.parse(stdout);
  expect(parts).toBeGreaterThan(20);
  expect({ interrupted, steady }).toEqual({ interrupted: 0, steady: 6_000 });
});
