import { test } from "vitest";
import { expectShortTurns } from "./support/large-group.ts";

test("a service with very many endpoints is compared and written in short turns, and so it drains", () =>
  expectShortTurns(30_000));
