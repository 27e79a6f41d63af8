import { test } from "vitest";
import { createConntrackTools } from "../../src/conntrack/conntrack.ts";
import { createRunner } from "../../src/index.ts";
import { createNamespace } from "../../src/netns/index.ts";
import { kernelSuite } from "../kernel-test.ts";
import { cases, check, checkZones, sweepsBy, track, tracked } from "./cases.ts";

kernelSuite("conntrack-tools on the kernel", () => {
  test.for(cases)("delete $name", async (given) => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    for (const [client, entry] of tracked.entries()) await track(runner, entry, client);
    await check(sweepsBy(createConntrackTools(runner)), given);
  });

  test("entries in other networks' zones are not touched", async () => {
    await using namespace = await createNamespace();
    const runner = createRunner({ prefix: namespace.argvPrefix });
    await checkZones(runner, sweepsBy(createConntrackTools(runner)));
  });
});
