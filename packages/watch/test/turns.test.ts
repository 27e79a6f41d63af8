import { expect, test } from "vitest";
import { Turns } from "../src/api/turns.ts";

const never = new AbortController().signal;

test("the first has the turn at once, the others in the order of their asking", async () => {
  const turns = new Turns();
  const [a, b, c] = [{}, {}, {}];
  expect([turns.claim(a), turns.claim(a), turns.claim(b)]).toEqual([true, true, false]);
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
  expect(turns.claim(a)).toBe(true);
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
  await waits;
  expect([turns.claim(b), turns.claim(c)]).toEqual([false, true]);
});

test("what has ended already does not wait", async () => {
  const turns = new Turns();
  const late = {};
  await turns.take({}, never);
  await turns.take(late, AbortSignal.abort());
  expect(turns.claim(late)).toBe(false);
});
