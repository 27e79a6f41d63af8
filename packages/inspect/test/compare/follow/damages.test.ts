import { goldenScenario } from "@fairlead/testkit";
import { expect, test } from "vitest";
import { damages } from "./support/damages.ts";
import { differencesIn, recorded } from "./support/recorded.ts";

test.each(damages)("$mode: $what", ({ mode, scenario, change, expected }) => {
  const recording = recorded(goldenScenario(scenario), mode, "IPv4");
  const text = change(recording.text);
  expect(text).not.toBe(recording.text);
  expect(differencesIn({ ...recording, text }).map(({ kind }) => kind)).toContain(expected);
});
