/** One value of a metric. */
interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g;

/** The samples of one metric in Prometheus' text format; those that are no numbers are left out. */
export function samplesOf(text: string, name: string): readonly Sample[] {
  return text.split("\n").flatMap((line) => {
    if (!line.startsWith(name)) return [];
    const [, labels = "", value = ""] = /^(?:\{(.*)\})? (\S+)/.exec(line.slice(name.length)) ?? [];
    const number = Number(value);
    if (value === "" || Number.isNaN(number)) return [];
    const pairs = Array.from(labels.matchAll(LABEL), ([, key = "", of = ""]) => [key, of] as const);
    return [{ labels: Object.fromEntries(pairs), value: number }];
  });
}
