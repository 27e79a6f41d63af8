import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelTest } from "../kernel-test.ts";

kernelTest(
  "a watch tells what others do to a table, and what was missed as lost; own transactions it does not",
  async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
    const main = fileURLToPath(new URL("watch-main.ts", import.meta.url));
    const { stdout } = await runner.run([process.execPath, "--conditions=@fairlead/source", "--no-warnings", main], {
      timeoutMs: 0,
    });
    const { generation, ...reported } = JSON.parse(stdout);
    const byNft = { kind: "transaction", process: { id: expect.any(Number), name: "nft" } };
    expect(reported).toEqual({
      problems: [],
      first: { ...byNft, generation: expect.any(Number), tables: [{ family: "ip6", name: "kube-proxy" }] },
      own: "nothing",
      ownLarge: "nothing",
      refusedLarge: "nothing",
      otherTable: "nothing",
      element: { ...byNft, generation, tables: [{ family: "ip", name: "kube-proxy" }] },
      meanwhile: expect.toSatisfy((news) => news.kind === "lost" || news.process.name === "nft"),
      flushed: {
        ...byNft,
        generation: expect.any(Number),
        tables: expect.arrayContaining([
          { family: "ip", name: "kube-proxy" },
          { family: "ip6", name: "kube-proxy" },
        ]),
      },
    });
  },
);
