import { fileURLToPath } from "node:url";
import { createRunner } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { expect, test } from "vitest";

const program = fileURLToPath(new URL("support/relay-in-namespace.ts", import.meta.url));

/** What `connect` or `send` refuses at once: no route, class E, broadcast, multicast, link-local without its device. */
const ADDRESSES = [
  "192.0.2.55",
  "240.0.0.1",
  "255.255.255.255",
  "127.255.255.255",
  "224.0.0.1",
  "2001:db8::5",
  "fe80::1",
  "ff02::1",
];

test("no endpoint ends the process: one that cannot be reached is passed over", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix });
  const node = [process.execPath, "--no-warnings", "--conditions=@fairlead/source", program] as const;
  const { stdout } = await runner.run([...node, ...ADDRESSES], { timeoutMs: 0 });
  const outcome = "served, passed over 1; only that: refused 1, sockets 1";
  const expected = ["UDP", "TCP"].flatMap((protocol) => ADDRESSES.map((one) => `${protocol} ${one}: ${outcome}\n`));
  expect(stdout).toBe(expected.join(""));
});
