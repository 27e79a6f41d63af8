import { count, type Outcome, titleOf } from "./outcome.ts";

/** JUnit's XML, one suite for each mode and suite, as CI systems read it. */
export function junit(name: string, outcomes: readonly Outcome[]): string {
  const groups = Map.groupBy(outcomes, ({ mode, suite }) => `${mode} ${suite}`);
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites ${attributes({ name, ...totals(outcomes) })}>`,
    ...[...groups].flatMap(([group, cases]) => [
      `  <testsuite ${attributes({ name: group, ...totals(cases) })}>`,
      ...cases.map((outcome) => testCase(`${name} ${group}`, outcome)),
      "  </testsuite>",
    ]),
    "</testsuites>\n",
  ].join("\n");
}

function totals(outcomes: readonly Outcome[]) {
  const { failed, skipped } = count(outcomes);
  const time = outcomes.reduce((sum, { ms }) => sum + ms, 0) / 1000;
  return { tests: outcomes.length, failures: failed, skipped, time };
}

function testCase(classname: string, outcome: Outcome): string {
  const { result, ms } = outcome;
  const open = `    <testcase ${attributes({ classname, name: titleOf(outcome), time: ms / 1000 })}`;
  if (result.kind === "passed") return `${open}/>`;
  const inner =
    result.kind === "skipped"
      ? `<skipped ${attributes({ message: result.reason })}/>`
      : `<failure ${attributes({ message: result.message })}>${escapeXml(result.artifacts ?? "")}</failure>`;
  return `${open}>${inner}</testcase>`;
}

function attributes(values: Readonly<Record<string, string | number>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}="${escapeXml(String(value))}"`)
    .join(" ");
}

const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };

/** What XML 1.0 has no way to write is left out. */
function escapeXml(text: string): string {
  const written = [...text].filter((character) => character >= " " || "\t\n\r".includes(character)).join("");
  return written.replace(/[&<>"]/g, (character) => ENTITIES[character] ?? character);
}
