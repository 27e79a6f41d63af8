import { FLAGS } from "../src/flags.ts";
import { fairleadSchema } from "../src/table/fairlead.ts";
import { kubeProxySchema } from "../src/table/kube-proxy.ts";
import { type FieldRow, fieldsOf } from "../src/table/row.ts";

/** From the root of the repository. */
export const COMPATIBILITY_PAGE = "docs/compatibility.md";

/** The page with its tables as the configuration's table has them: `pnpm run schema` writes it, a test compares. */
export function withTables(page: string): string {
  const flags = [...FLAGS].map(([name, { row }]) => ({ name: `--${name}`, row }));
  const theirs = [...flags.filter(({ row }) => row.meaning === undefined), HELP];
  theirs.sort((a, b) => (a.name < b.name ? -1 : 1));
  const fields = fieldsOf(kubeProxySchema).map((row) => ({ name: row.path, row }));
  // A flag that sets a field is in that field's row.
  const ofFields = new Set(fields.map(({ row: { flag } }) => `--${flag}`));
  const tables = [
    ["Fields of KubeProxyConfiguration", ["field", "flag", "compared", "how or why"], fields.map(comparedField)],
    ["Flags", ["flag", "compared", "how or why"], theirs.filter(({ name }) => !ofFields.has(name)).map(compared)],
    ["Fairlead's own", ["flag", "field of FairleadConfiguration (fairlead.dev/v1alpha1)", "meaning"], ownRows(flags)],
  ] as const;
  return tables.reduce((text, [heading, head, rows]) => {
    const same = rows.filter((row) => row.at(-2) === "same" && row.at(-1) === "");
    const others = rows.filter((row) => !same.includes(row));
    return withTable(same.length === 0 ? text : withSame(text, heading, same), heading, [head, ...others]);
  }, page);
}

/** Before the table, as a list: what is the same, with nothing to know. */
export const SAME = "Same as kube-proxy's: ";

/** It is commander's own flag. */
const HELP = { name: "--help", row: { differs: "grouped by subject; flags of old and of Windows are not listed" } };

interface Named {
  readonly name: string;
  readonly row: Pick<FieldRow, "differs" | "notApplicable" | "note" | "meaning">;
}

function compared({ name, row: { differs, notApplicable, note = "" } }: Named): readonly string[] {
  if (notApplicable !== undefined) return [code(name), "not applicable", notApplicable];
  return [code(name), differs === undefined ? "same" : "different", differs ?? note];
}

function comparedField(field: { readonly name: string; readonly row: FieldRow }): readonly string[] {
  const [name = "", ...rest] = compared(field);
  const { flag, meaning } = field.row;
  return [name, flag === undefined || meaning !== undefined ? "" : code(`--${flag}`), ...rest];
}

/** Fields with their flags, then flags without a field of the document. */
function ownRows(flags: readonly Named[]): readonly (readonly string[])[] {
  const fields = fieldsOf(fairleadSchema).map(({ path, flag, meaning = "" }) => {
    return [flag === undefined ? "" : code(`--${flag}`), code(path), meaning];
  });
  const named = new Set(fields.map(([flag]) => flag));
  const others = flags.filter(({ name, row }) => row.meaning !== undefined && !named.has(code(name)));
  return [...fields, ...others.map(({ name, row }) => [code(name), "", row.meaning ?? ""])];
}

function code(text: string): string {
  return `\`${text}\``;
}

/** @throws Error where the page has no list below the heading */
function withSame(page: string, heading: string, rows: readonly (readonly string[])[]): string {
  const names = rows.map(([name, ...rest]) => (rest.length < 3 || rest[0] === "" ? name : `${name} (${rest[0]})`));
  const start = page.search(new RegExp(`^## ${heading}`, "m"));
  const from = page.indexOf(`\n${SAME}`, start) + 1;
  if (start < 0 || from === 0) throw new Error(`${COMPATIBILITY_PAGE} has no line "${SAME}" below ${heading}`);
  return `${page.slice(0, from)}${SAME}${names.join(", ")}.${page.slice(page.indexOf("\n", from))}`;
}

/** @throws Error where the page has no table below the heading */
function withTable(page: string, heading: string, rows: readonly (readonly string[])[]): string {
  const start = page.search(new RegExp(`^## ${heading}`, "m"));
  const from = page.indexOf("\n| ", start) + 1;
  const [old = ""] = /^(\|.*\n)+/.exec(page.slice(from)) ?? [];
  if (start < 0 || old === "") throw new Error(`${COMPATIBILITY_PAGE} has no table below ${heading}`);
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |\n`;
  const [head = [], ...body] = rows;
  const rule = widths.map((width) => "-".repeat(width));
  return page.slice(0, from) + [head, rule, ...body].map(line).join("") + page.slice(from + old.length);
}
