import { test } from "vitest";
import { expectShortTurns } from "./support/large-group.ts";

/** More than a call may have arguments on a main thread, such as the agent's. A worker's stack is larger. */
test("so is one with 150,000", () => expectShortTurns(150_000));
