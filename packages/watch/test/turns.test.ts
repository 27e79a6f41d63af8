import { expect, test } from "vitest";
import { Turns } from "../src/api/turns.ts";

const never = new AbortController().signal;

test("the first has the turn at once, the others in the order of their asking", async () => {
  const turns = new Turns();
  const [a, b, c] = [{}, {}, {}];
  expect(await turns.take(a, never)).toBe(false);
  expect(await turns.take(a, never)).toBe(false);
  const order: string[] = [];
  const waiting = [turns.take(b, never).then(() => order.push("b")), turns.take(c, never).then(() => order.push("c"))];
  // Not b's to pass.
  turns.pass(b);
  await Promise.resolve();
  expect(order).toEqual([]);
  turns.pass(a);
  await waiting[0];
  expect(order).toEqual(["b"]);
  turns.pass(b);
  await waiting[1];
  turns.pass(c);
  expect(await turns.take(a, never)).toBe(false);
});

test("one that stops waiting is passed over", async () => {
  const turns = new Turns();
  const [a, b, c] = [{}, {}, {}];
  await turns.take(a, never);
  const stop = new AbortController();
  const left = turns.take(b, stop.signal);
  const waits = turns.take(c, never);
  stop.abort();
  await left;
  turns.pass(a);
  expect(await waits).toBe(true);
  expect(await turns.take(c, never)).toBe(false);
});

test("what has ended already does not wait", async () => {
  const turns = new Turns();
  await turns.take({}, never);
  expect(await turns.take({}, AbortSignal.abort())).toBe(true);
});
