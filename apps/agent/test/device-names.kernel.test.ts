/** Devices whose names are what other programs would take for options, code, patterns or ends of texts. */

import { beforeAll, expect, test } from "vitest";
import { manifestOf, onBundleNode } from "./support/bundle-node.ts";

/** The kernel refuses only empty ones, `.`, `..`, slashes, colons and white space. */
const NAMES = [
  '"',
  "'",
  "$(id)",
  "`id`",
  "-j",
  "--",
  "*",
  "a;b",
  "\\",
  "{}",

  "a,b",
  "#",
  "\u00e9",
  "\u001b[2J",
  "\u202e",
];

const addressOf = (at: number) => `10.9.${at}.1`;
const MODES = { iptables: ["iptables-save"], nftables: ["nft", "list", "ruleset"] } as const;

onBundleNode("a node with hostile device names", ({ inside, file, served, cleanUp }) => {
  beforeAll(async () => {
    const web = JSON.parse(manifestOf("web", "10.96.0.10", "10.144.0.9"));
    Object.assign(web.items[0].spec, { type: "NodePort", ports: [{ name: "http", port: 80, nodePort: 30_080 }] });
    await file("manifests/web.json", JSON.stringify(web));
    await inside().run(["ip", "link", "set", "lo", "up"]);
    for (const [at, name] of NAMES.entries()) {
      await inside().run(["ip", "link", "add", "name", name, "type", "veth", "peer", "name", `peer${at}`]);
      await inside().run(["ip", "address", "add", `${addressOf(at)}/24`, "dev", name]);
      await inside().run(["ip", "link", "set", "dev", name, "up"]);
    }
  });

  test.each(Object.entries(MODES))("%s mode serves node ports on the address of each", async (mode, list) => {
    const flags = ["--nodeport-addresses=10.9.0.0/16", "--cluster-cidr=10.144.0.0/16", "--manifests=manifests", "-v=2"];
    let rules = "";
    const log = await served([`--proxy-mode=${mode}`, `--state-dir=${mode}`, ...flags], async () => {
      rules = (await inside().run(list)).stdout;
    });
    for (const at of NAMES.keys()) expect(rules).toMatch(new RegExp(`\\b${addressOf(at)}\\b`));
    expect(log.join("\n")).not.toContain("\u001b");
    expect(log.filter((line) => /^E/.test(line))).toEqual([]);
    await cleanUp();
  });
});
