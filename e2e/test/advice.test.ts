import { ADVICE_NAMES } from "@fairlead/inspect";
import { expect, test } from "vitest";
import { adviceCases, NOT_FOLLOWED } from "../src/specs/advice/specs.ts";

test.each(ADVICE_NAMES)("advice %s is followed by a spec, or it is said why none does", (name) => {
  const cases = adviceCases.filter(({ advice }) => advice === name);
  expect(cases.length > 0).toBe(NOT_FOLLOWED[name] === undefined);
});
