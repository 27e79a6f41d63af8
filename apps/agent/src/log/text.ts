const LETTERS: Readonly<Record<string, string>> = { info: "I", warn: "W", error: "E" };
const HEADER = new Set(["level", "ts", "msg", "v"]);

/**
 * One JSON log line in klog's text form, which log collectors of clusters know:
 * `I0131 03:58:31.755000    4711 fairlead] "Sync done" ipFamily="IPv4" milliseconds=12`.
 * Values are quoted, so that none of them can begin a line of its own.
 */
export function textLine(json: string, pid: number): string {
  const record: unknown = JSON.parse(json);
  if (typeof record !== "object" || record === null) return json;
  const fields = new Map(Object.entries(record));
  const letter = LETTERS[String(fields.get("level"))] ?? "I";
  const pairs = [...fields]
    .filter(([name]) => !HEADER.has(name))
    .map(([name, value]) => ` ${name}=${typeof value === "number" ? value : quoted(value)}`);
  const time = klogTime(new Date(Number(fields.get("ts"))));
  return `${letter}${time} ${String(pid).padStart(7)} fairlead] ${quoted(fields.get("msg"))}${pairs.join("")}\n`;
}

function quoted(value: unknown): string {
  return JSON.stringify(typeof value === "string" ? value : JSON.stringify(value));
}

/** `MMDD hh:mm:ss.uuuuuu`, local time as klog has it. */
function klogTime(at: Date): string {
  const two = (value: number) => String(value).padStart(2, "0");
  const millis = String(at.getMilliseconds()).padStart(3, "0");
  const day = `${two(at.getMonth() + 1)}${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${millis}000`;
}
