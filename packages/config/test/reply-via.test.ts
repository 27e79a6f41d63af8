import { describe, expect, test } from "vitest";
import { configOf, errorsOf, parse, parseFile } from "./parse.ts";

const file = (mode: string, ...lines: readonly string[]) =>
  parseFile(
    [`mode: ${mode}`, "---", "apiVersion: fairlead.dev/v1alpha1", "kind: FairleadConfiguration", ...lines].join("\n"),
  );
const DEFAULTS = { markMask: 0x3000, rulePriority: 200, firstTable: 17_000 };

describe("replyVia", () => {
  test("is off unless asked for", () => {
    expect(configOf(parse([])).replyVia).toBeUndefined();
  });

  test.each(["iptables", "nftables", "ipvs"])("is auto or a list in %s mode", (mode) => {
    expect(configOf(file(mode, "replyVia: auto")).replyVia).toEqual({ uplinks: "auto", ...DEFAULTS });
    const list = "replyVia: [{interface: eth1}, {interface: eth2, table: 102}]";
    expect(configOf(file(mode, list)).replyVia?.uplinks).toEqual([
      { interface: "eth1" },
      { interface: "eth2", table: 102 },
    ]);
  });

  test("marks, priority and tables are settings", () => {
    const routing = "replyRouting: {markMask: 0xff0000, rulePriority: 90, firstTable: 500, unusedMarks: [calico]}";
    const { replyVia } = configOf(file("nftables", "replyVia: auto", routing));
    expect(replyVia).toEqual({ uplinks: "auto", markMask: 0xff_0000, rulePriority: 90, firstTable: 500 });
  });

  test.each([
    ["0x4000", "0x4000: must not contain bits of masqueradeBit (0x4000)"],
    ["0x9000", "0x9000: must not contain bits of kubelet's drop bit (0x8000): 0x8000 is both"],
    ["0x10000", "0x10000: must not contain bits of calico (0xffff0000): 0x10000 is both; where no calico runs"],
    ["0x80", "0x80: must not contain bits of istio (0xfff): 0x80 is both"],
    ["0x1200", "0x1200: must not contain bits of cilium (0xf00): 0x200 is both"],
  ])("the mask %s is refused", (mask, message) => {
    const errors = errorsOf(file("iptables", "replyVia: auto", `replyRouting: {markMask: ${mask}}`));
    expect(errors).toContainEqual(expect.stringContaining(`replyRouting.markMask: ${message}`));
  });

  test.each([
    ["rulePriority: 99", "rulePriority: 99: must not be a priority of calico's routing rules (99)"],
    [
      "rulePriority: 100",
      "rulePriority: 100: must not be a priority of cilium's routing rules (1, 9, 10, 20, 100, 109, 110, 111, 112)",
    ],
    [
      "firstTable: 2003",
      "firstTable: 2003: must not lead to tables of cilium (2004, 2005): those of replyVia are 2003 to 2004",
    ],
    ["firstTable: 2005", "firstTable: 2005: must not lead to tables of cilium"],
  ])("%s is another program's", (setting, message) => {
    expect(errorsOf(file("iptables", "replyVia: auto", `replyRouting: {${setting}}`))).toEqual([
      expect.stringContaining(`replyRouting.${message}`),
    ]);
  });

  test.each(["rulePriority: 101", "firstTable: 2002", "firstTable: 2006"])("%s is free", (setting) => {
    const routing = `replyRouting: {${setting}}`;
    expect(configOf(file("iptables", "replyVia: auto", routing)).replyVia).toBeDefined();
  });

  test("the masquerade bit is the mode's", () => {
    const settings = "nftables: {masqueradeBit: 12}";
    expect(errorsOf(file(`nftables\n${settings}`, "replyVia: auto"))).toContainEqual(
      expect.stringContaining("0x3000: must not contain bits of masqueradeBit (0x1000)"),
    );
  });

  test.each([
    ["userspace", "replyVia: auto", "replyVia: auto: works in iptables, nftables and ipvs mode"],
    ["nftables", "replyVia: auto\nnftables: {fastPath: {devices: [eth0]}}", "cannot be combined with"],
    ["nftables", "replyVia: yes please", "replyVia: yes please: must be auto, or a list of {interface: NAME}"],
    ["nftables", "replyVia: []", "replyVia: []: must name an interface, or be auto"],
    ["nftables", "replyVia: [{interface: eth 1}]", "replyVia[0].interface: eth 1: must be the name of an interface"],
    ["nftables", "replyVia: [{interface: a}, {interface: a}]", "replyVia[1].interface: a: must be listed once"],
    ["nftables", "replyVia: [{interface: a}, {interface: b}, {interface: c}]", "markMask 0x3000 is enough for 2"],
    ["nftables", "replyVia: [{interface: a, table: 254}]", "replyVia[0].table: 254: must be a table of yours"],
    ["nftables", "replyVia: auto\nserviceProxyName: edge", "is for the node's first proxy"],
  ])("%s, %s is an error", (mode, setting, message) => {
    expect(errorsOf(file(mode, setting))).toContainEqual(expect.stringContaining(message));
  });
});
