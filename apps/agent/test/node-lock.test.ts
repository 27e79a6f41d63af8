import { expect, test } from "vitest";
import { warnOfDoubt } from "../src/start/node.ts";

function said(lock: Parameters<typeof warnOfDoubt>[0]): readonly unknown[] {
  const lines: unknown[] = [];
  warnOfDoubt(lock, { warn: (message, fields) => void lines.push([message, fields]) });
  return lines;
}

test("an agent that holds the node lock never says that it serves without it", () => {
  expect(said({ held: true })).toEqual([]);
  const reason = "a process holds a lock like the agent's";
  expect(said({ held: true, doubt: reason })).toEqual([
    [expect.stringMatching(/^Another agent may be running on this node; the node lock is held/), { reason }],
  ]);
  expect(said({ held: false, doubt: "no folder" })).toEqual([
    [expect.stringMatching(/serving without the node lock$/), { reason: "no folder" }],
  ]);
});
