import { expect } from "vitest";
import { openKernelReader, type Runner } from "../src/index.ts";
import { insideTest } from "./kernel-test.ts";

const CASES = (["nft", "legacy"] as const).flatMap((variant) =>
  (["IPv4", "IPv6"] as const).map((family) => ({ variant, family })),
);

/** How a proxy's rules are changed, step by step. */
const HINT = "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n";
const STEPS = [
  `${HINT}*nat\n:KUBE-SERVICES - [0:0]\n-A KUBE-SERVICES -j ACCEPT\nCOMMIT\n`,
  "*nat\n-R KUBE-SERVICES 1 -j RETURN\nCOMMIT\n",
  "*filter\n-A INPUT -j ACCEPT\nCOMMIT\n",
  "*nat\n-F KUBE-SERVICES\nCOMMIT\n",
];

for (const { variant, family } of CASES) {
  insideTest(
    `${variant}, ${family}: rules are listed after a change of any table, and not again without one`,
    async ({ runner }) => {
      const tool = `${family === "IPv4" ? "iptables" : "ip6tables"}-${variant}`;
      let listings = 0;
      const counting: Runner = {
        run: runner.run,
        stream(argv, options) {
          if (argv[0] === `${tool}-save` && argv.length === 1) listings += 1;
          return runner.stream(argv, options);
        },
      };
      const kernel = openKernelReader(counting);
      const seen: { texts: unknown; filter: boolean | undefined; listings: number }[] = [];
      for (const input of STEPS) {
        await runner.run([`${tool}-restore`, "--noflush", "-w", "5"], { input });
        listings = 0;
        const readings = [await kernel.rules(family), await kernel.rules(family)];
        const texts = readings.map((rules) => rules.get("nat")?.chains.get("KUBE-SERVICES")?.texts);
        seen.push({ texts, filter: readings[1]?.has("filter"), listings });
      }
      const [accept, back, filter, flushed] = seen;
      expect(accept?.texts).toEqual([["-j ACCEPT"], ["-j ACCEPT"]]);
      // The first of a family may be that by which the variant is found.
      const returned = [["-j RETURN"], ["-j RETURN"]];
      expect(back).toMatchObject({ texts: returned, listings: 1 });
      expect(filter).toEqual({ texts: returned, filter: true, listings: 1 });
      expect(flushed).toMatchObject({ texts: [[], []], listings: 1 });
      listings = 0;
      for (let turn = 0; turn < 60; turn++) await kernel.rules(family);
      expect(listings).toBe(1);
      await kernel.close();
    },
  );
}
