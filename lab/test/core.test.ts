import { availableParallelism } from "node:os";
import { expect, test } from "vitest";
import { coreOfNextGuest, coresIn } from "../src/uml/boot.ts";

test.each([
  ["0-1", [0, 1]],
  ["3", [3]],
  ["0-2,5,8-9", [0, 1, 2, 5, 8, 9]],
])("a process may run on %s", (list, cores) => {
  const status = `Name:\tnode\nCpus_allowed:\t3\nCpus_allowed_list:\t${list}\nMems_allowed_list:\t0\n`;
  expect(coresIn(status)).toEqual(cores);
});

test("guests of one process take the cores in turn", async () => {
  const turns = [await coreOfNextGuest(), await coreOfNextGuest(), await coreOfNextGuest()];
  expect(new Set(turns).size).toBe(Math.min(turns.length, availableParallelism()));
});
