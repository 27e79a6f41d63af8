import { FakeIptables } from "@fairlead/kernel/fake";
import { expect, test } from "vitest";
import { COUNTERS } from "../src/index.ts";
import { differences, recordings, sync } from "./support/recordings.ts";

test.each(recordings)("$name, $family: as kube-proxy left it, on the fake", async (recording) => {
  const fake = new FakeIptables({ family: recording.family, nfacct: new Set(COUNTERS) });
  await sync(fake, recording, async (names) => new Set(names));
  expect(differences(recording, fake.ruleSet())).toEqual([]);
});
