import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

kernelTest("netlink, nft's text and nft's JSON say the same of kube-proxy's tables", async () => {
  await using namespace = await createNamespace();
  const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
  const main = fileURLToPath(new URL("listings-main.ts", import.meta.url));
  const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
    timeoutMs: 0,
  });
  const seen: Record<string, Record<"netlink" | "text" | "json", readonly string[]>> = JSON.parse(stdout);
  expect(Object.keys(seen)).not.toEqual([]);
  for (const [name, { netlink, text, json }] of Object.entries(seen)) {
    expect(text, name).toEqual(netlink);
    // nft's JSON has no comments of tables and chains, and not every flag.
    expect(json.filter(saidInJson), name).toEqual(netlink.filter(saidInJson));
  }
});

function saidInJson(line: string): boolean {
  return !/^\t+(comment|flags) /.test(line);
}
