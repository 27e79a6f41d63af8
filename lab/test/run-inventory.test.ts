import { expect, test } from "vitest";
import { mountedNamespaces } from "../src/support/run-inventory.ts";

const mount = (path: string) => `36 35 0:4 net:[4026532335] ${path} rw shared:1 - nsfs nsfs rw\n`;
const none: ReadonlySet<string> = new Set();

test("a namespace of another program that got the number of one of the run's is not the run's", () => {
  const ours = mountedNamespaces(mount("/run/netns/ours"), new Set(["net:[4026532335]"]), none);
  expect(ours).toEqual(["net:[4026532335] at /run/netns/ours"]);
  expect(mountedNamespaces(mount("/run/netns/other"), none, new Set([...ours, "net:[4026532335]"]))).toEqual([]);
  expect(mountedNamespaces(mount("/run/netns/ours"), none, new Set(ours))).toEqual(ours);
});
