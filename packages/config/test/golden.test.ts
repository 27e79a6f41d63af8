import { describe, expect, test } from "vitest";
import { FLAGS } from "../src/flags/table.ts";
import { configOf, fixture, parse } from "./parse.ts";

/** The fixtures are what kube-proxy v1.37.1 wrote with --write-config-to, and its flags. */
describe("as kube-proxy v1.37.1", () => {
  test.each(["iptables", "ipvs", "nftables"])("--write-config-to writes the same file, %s", (mode) => {
    const { action } = configOf(parse([`--proxy-mode=${mode}`, "--write-config-to=/tmp/out"]));
    expect(action).toEqual({ kind: "write-config", path: "/tmp/out", text: fixture(`defaults-${mode}.yaml`) });
  });

  test.each(["iptables", "ipvs", "nftables"])("the file that it wrote says the same again, %s", (mode) => {
    const file = fixture(`defaults-${mode}.yaml`);
    const result = parse(["--config=/etc/config.conf", "--write-config-to=/tmp/out"], file);
    expect(result).toMatchObject({ warnings: [], config: { action: { text: file } } });
  });

  const flags = fixture("flags.tsv")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t"));
  test.each(flags.filter(([name]) => name !== "--help"))(
    "%s has the type %j and the default %j",
    (name, type, value) => {
      const flag = FLAGS.get(name?.slice(2) ?? "");
      expect(flag?.type.placeholder.replace("[=true]", "")).toBe(type);
      expect(flag?.defaultText ?? "").toBe(name === "--ipvs-scheduler" ? "rr" : (value ?? "").replaceAll('"', ""));
    },
  );

  test("no more flags than these, those of old and of Windows, and Fairlead's own", () => {
    const theirs = new Set(flags.map(([name]) => name));
    const others = [...FLAGS.values()].filter(({ name }) => !theirs.has(`--${name}`));
    expect(
      others.filter(({ windows, deprecated }) => windows !== true && deprecated === undefined).map((flag) => flag.name),
    ).toEqual([
      "exclude-cluster-cidr",
      "mixed-services",
      "excluded-frontends",
      "ownership-annotation",
      "state-dir",
      "manifests",
    ]);
  });
});
