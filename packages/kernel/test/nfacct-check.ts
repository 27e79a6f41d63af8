import { expect } from "vitest";
import type { Nfacct } from "../src/index.ts";

export async function check(nfacct: Nfacct): Promise<void> {
  expect(await nfacct.read("dropped")).toBeUndefined();
  expect(await nfacct.ensure("dropped")).toEqual({ ok: true });
  expect(await nfacct.ensure("dropped")).toEqual({ ok: true });
  expect(await nfacct.read("dropped")).toEqual({ packets: 0, bytes: 0 });
  expect(await nfacct.read("other")).toBeUndefined();
}
