import { access, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNamespace } from "@fairlead/kernel/netns";
import { describe, expect, test } from "vitest";
import { machineRunner } from "../src/provider/kind/machine.ts";
import { waitUntil } from "../src/support/wait-until.ts";

// Only root has process spaces.
describe.runIf(process.getuid?.() === 0)("a cluster's machine", () => {
  test("a run that is canceled ends its program", async () => {
    await using namespace = await createNamespace({ whole: true });
    const folder = await mkdtemp(join(tmpdir(), "fairlead-machine-"));
    const started = join(folder, "started");
    const cancel = new AbortController();
    const run = machineRunner(namespace).run(["sh", "-c", 'touch "$1" && exec sleep infinity', "sh", started], {
      signal: cancel.signal,
    });
    const ended = expect(run).rejects.toMatchObject({ reason: "aborted" });
    await waitUntil("the program", 60_000, () =>
      access(started).then(
        () => true,
        () => undefined,
      ),
    );
    cancel.abort();
    await ended;
    await rm(folder, { recursive: true });
  });
});
