import { readdirSync, readFileSync } from "node:fs";
import { isObject, type RawObject } from "@fairlead/base";
import { describe, expect, test } from "vitest";
import { parse as parseYAML } from "yaml";
import { COMPATIBILITY_PAGE, SAME, withTables } from "../scripts/compatibility-tables.ts";
import { FLAGS } from "../src/flags.ts";
import { configurationSchema } from "../src/table/json-schema.ts";
import { configOf, FILE, fixture, parse, parseFile } from "./parse.ts";

const document = readFileSync(new URL(`../../../${COMPATIBILITY_PAGE}`, import.meta.url), "utf8");

/** The rows of the list and the table below a heading, as cells without their backticks. */
function rowsBelow(heading: string, columns: number): string[][] {
  const [, section = ""] = document.split(new RegExp(`^## ${heading}.*$`, "m"));
  const [text = ""] = section.split(/^## /m);
  const list = text.split("\n").find((line) => line.startsWith(SAME)) ?? "";
  const same = Array.from(list.matchAll(/`([^`]+)`(?: \(`([^`]+)`\))?/g), ([, name = "", flag = ""]) =>
    [name, flag, "same", ""].filter((_, at) => columns === 4 || at !== 1),
  );
  const lines = text.split("\n").filter((line) => /^\|[ |]*`/.test(line));
  const rows = lines.map((line) =>
    line
      .split("|")
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll("`", "")),
  );
  return [...same, ...rows];
}

const fieldRows = rowsBelow("Fields of KubeProxyConfiguration", 4);
const fields = fieldRows.map(([name = "", , ...rest]) => [name, ...rest]);
/** A flag that sets a field is in that field's row; of several fields the first one's counts. */
const flagsOfFields = new Map(
  fieldRows
    .toReversed()
    .flatMap(([, flag = "", ...rest]): [string, string[]][] => (flag === "" ? [] : [[flag, [flag, ...rest]]])),
);
const flags = [...rowsBelow("Flags", 3), ...flagsOfFields.values()];
const own = rowsBelow("Fairlead's own", 3);

test("every row says what is different, or why it has no meaning", () => {
  for (const [name, compared = "", why] of [...fields, ...flags]) {
    expect(["same", "different", "not applicable"], name).toContain(compared);
    if (compared !== "same") expect(why, name).not.toBe("");
  }
});

test("every flag of kube-proxy and every flag of ours has one row", () => {
  const theirs = fixture("flags.tsv")
    .trimEnd()
    .split("\n")
    .map((line) => line.split("\t", 1)[0] ?? "");
  // Some fields have no flag.
  const named = [...flags, ...own].map(([name]) => name).filter((name) => name !== "");
  const all = new Set([...theirs, ...[...FLAGS.keys()].map((name) => `--${name}`)]);
  expect([...named].sort()).toEqual([...all].sort());
  for (const name of theirs) expect(flags.map(([flag]) => flag)).toContain(name);
});

/** What a row says of a flag that changes nothing, and the help of such a flag. */
const WITHOUT_EFFECT = { row: /no effect|taken and ignored|not applicable/, help: /\bNo effect\b/ };

test("no help contradicts its row: what has no effect says so, and nothing else does", () => {
  for (const [name = "", compared = "", why = ""] of flags) {
    const definition = FLAGS.get(name.replace(/^--/, ""));
    if (definition === undefined || definition.row.group === "windows") continue;
    const expected = WITHOUT_EFFECT.row.test(`${compared}: ${why}`);
    expect(WITHOUT_EFFECT.help.test(definition.help), `${name}: ${definition.help}`).toBe(expected);
  }
});

test("what a help says of all cases, its row says as well", () => {
  const rows = new Map([...flags, ...own].map((cells) => [cells[0] ?? "", cells.join(" ")]));
  for (const [name, { help }] of FLAGS) {
    for (const [word] of help.matchAll(/\b(?:always|never|JSON|protobuf)\b/g)) {
      expect(rows.get(`--${name}`), `${name}: ${help}`).toContain(word);
    }
  }
});

test("every field that the schema and kube-proxy's own file have has one row", () => {
  const named = fields.map(([name]) => name ?? "");
  expect([...named].sort()).toEqual(leaves(schemaOf("KubeProxyConfiguration")).sort());
  const known = (path: string) => named.some((name) => path === name || path.startsWith(`${name}.`));
  for (const mode of ["iptables", "ipvs", "nftables"]) {
    const written = parseYAML(fixture(`defaults-${mode}.yaml`));
    expect(paths(written).filter((path) => !known(path))).toEqual(["apiVersion", "kind"]);
  }
});

test("every field of FairleadConfiguration has a row with its meaning", () => {
  expect(own.flatMap(([, field]) => (field === "" ? [] : [field])).sort()).toEqual(
    leaves(schemaOf("FairleadConfiguration")).sort(),
  );
  expect(own.filter(([, , meaning]) => meaning === "")).toEqual([]);
});

test("the page's tables are those of the sources (pnpm run schema)", () => {
  expect(document).toBe(withTables(document));
});

test("the published JSON Schema is that of the sources (pnpm run schema)", () => {
  const published = readFileSync(new URL("../schema/configuration.json", import.meta.url), "utf8");
  expect(JSON.parse(published)).toEqual(configurationSchema());
});

function schemaOf(kind: string): RawObject {
  const schema = configurationSchema();
  const part = kind === "FairleadConfiguration" ? schema["then"] : schema["else"];
  return isObject(part) ? part : {};
}

/** Paths of a schema's fields, but for the two that every document has. */
function leaves({ properties }: RawObject, prefix = ""): string[] {
  return Object.entries(isObject(properties) ? properties : {}).flatMap(([name, field]) => {
    if (prefix === "" && (name === "apiVersion" || name === "kind")) return [];
    return isObject(field) && isObject(field["properties"]) ? leaves(field, `${prefix}${name}.`) : [`${prefix}${name}`];
  });
}

function paths(value: unknown, prefix = ""): string[] {
  if (!isObject(value)) return [prefix];
  return Object.entries(value).flatMap(([name, field]) => paths(field, prefix === "" ? name : `${prefix}.${name}`));
}

/**
 * The fixtures are what kube-proxy v1.37.1 wrote with --write-config-to, for its defaults and for files and flags, and
 * its flags.
 */
describe("as kube-proxy", () => {
  test.each(["iptables", "ipvs", "nftables"])("--write-config-to writes the same file, %s", (mode) => {
    const { action } = configOf(parse([`--proxy-mode=${mode}`, "--write-config-to=/tmp/out"]));
    expect(action).toEqual({ kind: "write-config", path: "/tmp/out", text: fixture(`defaults-${mode}.yaml`) });
  });

  test.each(["iptables", "ipvs", "nftables"])("the file that it wrote says the same again, %s", (mode) => {
    const file = fixture(`defaults-${mode}.yaml`);
    const result = parse([`--config=${FILE}`, "--write-config-to=/tmp/out"], file);
    expect(result).toMatchObject({ warnings: [], config: { action: { text: file } } });
  });

  const recorded = readdirSync(new URL("fixtures/recorded/", import.meta.url));
  const names = (suffix: string) =>
    recorded.filter((name) => name.endsWith(suffix)).map((name) => name.replace(suffix, ""));

  test.each(names(".in.yaml"))("%s: the file means the same", (name) => {
    const { kubeProxyConfiguration } = configOf(parse([`--config=${FILE}`], fixture(`recorded/${name}.in.yaml`)));
    expect(kubeProxyConfiguration).toEqual(parseYAML(fixture(`recorded/${name}.out.yaml`)));
  });

  test.each(names(".args"))("%s: the flags mean the same", (name) => {
    const { kubeProxyConfiguration } = configOf(parse(fixture(`recorded/${name}.args`).trimEnd().split("\n")));
    expect(kubeProxyConfiguration).toEqual(parseYAML(fixture(`recorded/${name}.out.yaml`)));
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
      expect(flag?.default ?? "").toBe(name === "--ipvs-scheduler" ? "rr" : (value ?? "").replaceAll('"', ""));
    },
  );
});

/** What kube-proxy v1.37.1 said to files with these lines (`--config`, `--write-config-to`). */
const recorded: { readonly verdicts: readonly { readonly lines: string; readonly verdict: "accepts" | "refuses" }[] } =
  JSON.parse(fixture("verdicts.json"));

const DIFFERENCES: Readonly<Record<string, string>> = {
  "bindAddress: 10.0.0.01": "kube-proxy takes a leading zero for decimal, others for octal",
  "detectLocalMode: BridgeInterface\ndetectLocal: {bridgeInterface: a name with spaces}":
    "no interface can have that name, and it would go into rules",
  "mode: ipvs\nipvs: {scheduler: fastest}": "the kernel would refuse it with every sync",
  "hostnameOverride: $(NODE_NAME)": "a variable that was not replaced: no Node can be called so",
  "featureGates: {NoSuchGate: true}": "gates of other releases of kube-proxy are a warning here",
};

test.each(recorded.verdicts)("$lines: $verdict", ({ lines, verdict }) => {
  const ours = parseFile(lines).kind === "run" ? "accepts" : "refuses";
  expect(ours === verdict).toBe(!Object.hasOwn(DIFFERENCES, lines));
});

test("there are enough of them, and no difference without its file", () => {
  expect(recorded.verdicts.filter(({ verdict }) => verdict === "refuses").length).toBeGreaterThanOrEqual(40);
  const files = recorded.verdicts.map(({ lines }) => lines);
  expect(files).toEqual(expect.arrayContaining(Object.keys(DIFFERENCES)));
});
