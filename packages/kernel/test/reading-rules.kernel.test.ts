import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { createRunner } from "../src/index.ts";
import { createNamespace } from "../src/netns/index.ts";
import { kernelTest } from "./kernel-test.ts";

const MAIN = fileURLToPath(new URL("reading-rules-main.ts", import.meta.url));

const CASES = (["nft", "legacy"] as const).flatMap((variant) =>
  (["IPv4", "IPv6"] as const).map((family) => ({ variant, family })),
);

for (const { variant, family } of CASES) {
  kernelTest(
    `${variant}, ${family}: rules are listed after a change of any table, and not again without one`,
    async () => {
      await using namespace = await createNamespace();
      const runner = createRunner({ prefix: namespace.argvPrefix, env: namespace.env });
      const argv = [process.execPath, "--conditions=@fairlead/source", "--no-warnings", MAIN, variant, family] as const;
      const { stdout } = await runner.run(argv, { timeoutMs: 0 });
      const [accept, back, filter, flushed, many] = stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line));
      expect(accept.texts).toEqual([["-j ACCEPT"], ["-j ACCEPT"]]);
      expect(back.texts).toEqual([["-j RETURN"], ["-j RETURN"]]);
      expect(filter).toMatchObject({ texts: [["-j RETURN"], ["-j RETURN"]], filter: true });
      expect(flushed.texts).toEqual([[], []]);
      // The first of a family may be that by which the variant is found.
      expect([back, filter, flushed].map(({ listings }) => listings)).toEqual([1, 1, 1]);
      expect(many.listings).toBe(1);
    },
  );
}
