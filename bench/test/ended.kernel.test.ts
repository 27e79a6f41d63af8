import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Argv } from "@fairlead/kernel";
import { createNamespace } from "@fairlead/kernel/netns";
import { missingHere } from "@fairlead/lab/support/machine";
import { expect, test } from "vitest";
import { type RunningProxy, whileItRuns, withProxy } from "../src/proxy/running.ts";

const missing = await missingHere();

/** Says that it has synced, and goes on until it gets a signal. */
const PROGRAM = 'date +"I%m%d %H:%M:%S.%6N first"; exec sleep 60';

async function run<T>(use: (running: RunningProxy) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "ended-"));
  try {
    const bed = { folder, openNode: () => createNamespace() };
    const subject = {
      name: "fairlead",
      argv: (): Argv => ["sh", "-c", PROGRAM],
      synced: /^I(\d{4} \d\d:\d\d:\d\d\.\d{6}) /,
    } as const;
    const path = process.env["PATH"] ?? "";
    return await withProxy(
      bed,
      { subject, variant: "nft", configFile: "", agent: { bundle: "", compiled: "" }, path, patience: 300_000 },
      use,
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

test.skipIf(missing !== undefined)("a proxy that is killed in a benchmark: how, and where its log is", async () => {
  const error = await run(({ pid }) => {
    process.kill(pid, "SIGKILL");
    return new Promise(() => {});
  }).catch((thrown: Error) => thrown.message);
  expect(error).toContain("SIGKILL");
  const [, log = ""] = /its log is in (\S+) /.exec(`${error}`) ?? [];
  expect(await readFile(log, "utf8")).toMatch(/ first$/m);
  await rm(log);
});

test.skipIf(missing !== undefined)("a proxy that was stopped is not a failure", async () => {
  expect(
    await run(async (running) => {
      await running.stop();
      return "done";
    }),
  ).toBe("done");
});

test("the error names a process's end, not what the end breaks", async () => {
  const ended = Promise.withResolvers<never>();
  const work = Promise.reject(new Error("ENOENT: /proc/1/status"));
  setImmediate(() => ended.reject(new Error("it ended")));
  await expect(whileItRuns(ended.promise, work)).rejects.toThrow("it ended");
});
