import { expect, test } from "vitest";
import { LostRules } from "../../src/iptables/tables-there.ts";

const CHAINS = { nat: ["KUBE-SERVICES"] };

function looks(count: number | undefined) {
  const kernel = { count, asked: 0 };
  const lost = new LostRules(async () => {
    kernel.asked++;
    return kernel.count === undefined ? undefined : [kernel.count];
  });
  return { kernel, lost };
}

test("nothing is asked before something was written", async () => {
  const { kernel, lost } = looks(3);
  expect(await lost.look(CHAINS)).toBe(false);
  expect(kernel.asked).toBe(0);
});

test("fewer rules are a loss, once; more of them and own ones are none", async () => {
  const { kernel, lost } = looks(3);
  await lost.writing(async () => {});
  const look = async (count: number | undefined) => {
    kernel.count = count;
    return lost.look(CHAINS);
  };
  expect([await look(3), await look(5), await look(4), await look(4), await look(undefined)]).toEqual([
    false,
    false,
    true,
    false,
    false,
  ]);
  await lost.writing(async () => {});
  expect([await look(1), await look(0)]).toEqual([false, true]);
});

test("a look during a write says nothing, and the write is forgiven though it failed", async () => {
  const { kernel, lost } = looks(3);
  await lost.writing(async () => {});
  await lost.look(CHAINS);
  const { promise, reject } = Promise.withResolvers<void>();
  const writing = lost.writing(() => promise);
  kernel.count = 0;
  expect(await lost.look(CHAINS)).toBe(false);
  reject(new Error("refused"));
  await expect(writing).rejects.toThrow("refused");
  expect(await lost.look(CHAINS)).toBe(false);
});
