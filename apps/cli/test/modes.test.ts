import { MODES } from "@fairlead/inspect";
import { expect, test } from "vitest";
import { agentOptions } from "../src/inputs/cluster-options.ts";

test("--mode offers every mode that plans can be made for", () => {
  expect(agentOptions.mode.choices).toEqual(MODES);
});
