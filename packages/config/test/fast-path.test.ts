import { expect, test } from "vitest";
import { configOf, errorsOf, parseFile } from "./parse.ts";

const file = (...lines: readonly string[]) =>
  parseFile("mode: nftables", "---", "apiVersion: fairlead.dev/v1alpha1", "kind: FairleadConfiguration", ...lines);
const devices = (list: string) => file("nftables:", `  fastPath: {devices: ${list}}`);

test("no connection bypasses rules unless the file says so", () => {
  expect(configOf(parseFile("mode: nftables")).nftables.fastPath).toBeUndefined();
  expect(configOf(devices('["cali*", eth0, eth0]')).nftables.fastPath).toEqual({ devices: ["cali*", "eth0"] });
  expect(configOf(devices("auto")).nftables.fastPath).toEqual({ devices: "auto" });
});

test.each([
  ["[]", "must name at least one device, such as eth0 or cali*, or be auto"],
  ["[lo]", "lo must not be among them: its packets are not forwarded"],
  ['["a b"]', '"a b" must be a device name of at most 15 characters, such as eth0 or cali*'],
  ["[abcdefghijklmnop]", '"abcdefghijklmnop" must be a device name of at most 15 characters, such as eth0 or cali*'],
  ["eth0", "must be auto, or a list of device names, such as cali*"],
])("devices: %s is an error", (list, error) => {
  const [first = ""] = errorsOf(devices(list));
  expect(first).toContain(": nftables.fastPath.devices: ");
  expect(first.endsWith(`: ${error}`)).toBe(true);
});
