/** Functions, operators and words of PromQL that the dashboards use; a new one fails the test until it stands here. */
const WORDS = new Set([
  "sum",
  "max",
  "avg",
  "count",
  "by",
  "and",
  "or",
  "on",
  "last_over_time",
  "rate",
  "increase",
  "histogram_quantile",
  "clamp_min",
  "topk",
  "le",
  "label_values",
]);

/** Names of the series that a PromQL expression asks for: `…_bucket` is as it stands there. */
export function seriesOf(expression: string): string[] {
  const bare = expression
    .replace(/\{[^}]*\}/g, "")
    .replace(/\[[^\]]*\]/g, "")
    .replace(/\b(?:by|on) \([^)]*\)/g, "")
    .replace(/label_values\((\w+), \w+\)/, "$1");
  const names = bare.match(/[a-zA-Z_:][\w:]*/g) ?? [];
  return [...new Set(names.filter((name) => !WORDS.has(name) && !/^e\d+$/.test(name)))];
}

/** Labels that an expression matches or groups by. */
export function labelsOf(expression: string): string[] {
  const matched = [...expression.matchAll(/(\w+)=~?"/g)].map(([, label = ""]) => label);
  const grouped = [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, list = ""]) => list.split(/,\s*/));
  return [...new Set([...matched, ...grouped])];
}
