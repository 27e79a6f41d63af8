import { requireTool } from "@fairlead/lab/tools/page-reader";
import { missingForUml } from "@fairlead/lab/uml/boot";
import { beforeAll, describe, expect, test } from "vitest";
import { runGuest } from "../src/guest/run-guest.ts";
import { suites } from "../src/guest/suites.ts";

/**
 * ipvs mode where there is a kernel that has IPVS: User-Mode Linux, in two guests side by side, which have one core
 * each.
 * Where the machine cannot run it, one line says why; in CI that is a failure.
 */
const missing = await missingForUml();

const { CI = "", FAIRLEAD_UML = "" } = process.env;
const ALL = FAIRLEAD_UML === "all";
/** The suite that takes as long as all others together has a guest of its own. */
const LONGEST = "conformance";

const named = FAIRLEAD_UML.split(",").filter((name) => suites.has(name));
/** It takes long; backend-ipvs has it on the fakes. `pnpm e2e --all` runs it too. */
const ON_DEMAND = "golden";
const chosen = [...suites].filter(([suite]) => (named.length > 0 ? named.includes(suite) : ALL || suite !== ON_DEMAND));

/** Four minutes on two quiet cores; alongside 45 programs that never wait, half an hour was too little. */
const LIMIT_MS = 5_400_000;

if (missing === undefined) {
  const problems = new Map<string, readonly string[]>();

  beforeAll(async () => {
    await requireTool();
    const names = chosen.map(([suite]) => suite);
    const guests = [names.filter((suite) => suite === LONGEST), names.filter((suite) => suite !== LONGEST)];
    const booted = guests.filter((guest) => guest.length > 0);
    const reports = await Promise.all(booted.map((guest) => runGuest(guest, LIMIT_MS)));
    for (const [name, found] of reports.flatMap((report) => [...report])) problems.set(name, found);
  }, LIMIT_MS);

  for (const [suite, { names }] of chosen) {
    describe(suite, () => {
      test.each(names)("%s", (name) => expect(problems.get(name)).toEqual([]));
    });
  }
} else {
  test("tests in User-Mode Linux", ({ skip }) => {
    if (CI !== "") throw new Error(`CI must run the tests in User-Mode Linux: ${missing}`);
    skip(missing);
  });
}
