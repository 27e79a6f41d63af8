import { randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { execa } from "execa";
import { expect, test } from "vitest";
import { watchLeftovers } from "../src/command/leftovers.ts";

function mark() {
  const id = `fairlead-leftovers-${randomUUID()}`;
  return { variable: ["FAIRLEAD_LEFTOVERS_TEST", id], folderPrefix: id } as const;
}

test("a run that takes everything down is clean", async () => {
  const own = mark();
  const watch = await watchLeftovers(own);
  const child = execa("sleep", ["60"], { env: { [own.variable[0]]: own.variable[1] }, reject: false });
  await watch.look();
  child.kill("SIGKILL");
  await child;
  const { table, changed } = await watch.finish();
  expect(changed.filter((line) => !/^(links|rules)/.test(line))).toEqual([]);
  expect(table).toMatch(/processes of the run +0 +1 +0/);
});

test("a process and a folder that stay are named", async () => {
  const own = mark();
  const watch = await watchLeftovers(own, { patienceMs: 0 });
  const child = execa("sleep", ["60"], { env: { [own.variable[0]]: own.variable[1] }, reject: false });
  const folder = await mkdtemp(join(tmpdir(), `${own.folderPrefix}-`));
  await watch.look();
  const { changed, clean } = await watch.finish();
  expect(clean).toBe(false);
  expect(changed).toEqual(
    expect.arrayContaining([
      expect.stringMatching(new RegExp(`processes: left behind ${child.pid} sleep 60`)),
      expect.stringMatching(/folders: left behind fairlead-leftovers-/),
    ]),
  );
  child.kill("SIGKILL");
  await child;
  await rm(folder, { recursive: true });
});
