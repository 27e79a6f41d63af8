import { expect, test } from "vitest";
import { ownTurn } from "../src/process-runner.ts";

test("processes that are asked for at once are started in turns of the event loop, one in each, in their order", async () => {
  let turn = 0;
  let counting = setImmediate(function count() {
    turn++;
    counting = setImmediate(count);
  });
  const turns = await Promise.all(
    Array.from({ length: 4 }, async () => {
      await ownTurn();
      return turn;
    }),
  );
  clearImmediate(counting);
  expect(turns[0]).toBe(0);
  expect(turns).toEqual([...new Set(turns)].sort());
});
