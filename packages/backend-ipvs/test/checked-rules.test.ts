import { webState } from "@fairlead/testkit/histories";
import { expect, test } from "vitest";
import { DEVICE } from "../src/index.ts";
import { FakeNode } from "./support/fake-node.ts";
import { type Live, live } from "./support/live.ts";

const MINUTE = 60_000;

/** Synced, and looked at: its rules were read. */
async function seen(): Promise<Live> {
  const made = await live([[[1, webState()]]], { node: new FakeNode({ largeTables: true }) });
  expect(await made.node.processes(() => looks(made))).toEqual(["iptables-legacy-save"]);
  return made;
}

async function looks(made: Live): Promise<void> {
  expect(await made.backend.difference(made.world.plan)).toBeUndefined();
}

/** Of as many characters as what it replaces. */
async function replaceRule({ node }: Live): Promise<void> {
  const rule = (mark: string) => `KUBE-MARK-MASQ -j MARK --or-mark ${mark}`;
  await node.rules.IPv4.meddle(`*nat\n-D ${rule("0x4000")}\n-A ${rule("0x8000")}\nCOMMIT\n`);
}

test("rules that nobody has touched are not read again, and looking starts no process", async () => {
  const made = await seen();
  expect(await made.node.processes(() => looks(made))).toEqual([]);
});

test("what else is missing is repaired without a process", async () => {
  const made = await seen();
  made.node.links.meddle({ kind: "delete-device", device: DEVICE });
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  expect(await made.node.processes(() => made.sync())).toEqual([]);
  expect(await made.differences()).toEqual([]);
});

test("a rule that the kernel's numbers do not show is found after ten minutes", async () => {
  const made = await seen();
  await replaceRule(made);
  await looks(made);
  made.now += 11 * MINUTE;
  expect(await made.backend.difference(made.world.plan)).toBeDefined();
  await made.sync();
  expect(await made.differences()).toEqual([]);
});

test("after a failure all rules are written, whatever the kernel's numbers say", async () => {
  const made = await seen();
  await replaceRule(made);
  made.node.faults.failNext();
  await expect(made.change([[2, webState()]])).rejects.toThrow("injected fault");
  await made.sync();
  expect(await made.differences()).toEqual([]);
});
