/** The log: JSON lines with Kubernetes' keys, or klog's text. */

import { writeSync } from "node:fs";
import { withoutHidden } from "@fairlead/core";
import { pino } from "pino";

/** Structured fields of a line: names in camelCase, values without secrets. */
export type Fields = Readonly<Record<string, unknown>>;

/**
 * The agent's log. What matters on every node is always said (start, mode, warnings, errors, changes of ownership); the
 * rest has a verbosity as in klog: 2 for syncs, 4 for debugging.
 */
export interface Log {
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** Says it only at this verbosity (-v) and above. */
  verbose(verbosity: number, message: string, fields?: Fields): void;
}

interface LogOptions {
  readonly format: "text" | "json";
  readonly verbosity: number;
  /** Takes whole lines; default: the process's standard error. */
  readonly write?: (line: string) => void;
  readonly now?: () => number;
}

/**
 * The agent's log on pino: JSON lines with the keys of Kubernetes' own JSON format, or klog's text. Whatever is in a
 * field, nothing of it is hidden or turns the line round: these characters are escaped.
 */
export function createLog(options: LogOptions): Log {
  const write = options.write ?? writeStderr;
  const now = options.now ?? Date.now;
  const logger = pino(
    {
      base: null,
      timestamp: () => `,"ts":${now()}`,
      formatters: { level: (level) => ({ level }) },
    },
    { write: (line) => write(withoutHidden(options.format === "json" ? line : textLine(line, process.pid))) },
  );
  return {
    info: (message, fields) => logger.info({ v: 0, ...fields }, message),
    warn: (message, fields) => logger.warn({ ...fields }, message),
    error: (message, fields) => logger.error({ ...fields }, message),
    verbose(verbosity: number, message: string, fields?: Fields) {
      if (verbosity <= options.verbosity) logger.info({ v: verbosity, ...fields }, message);
    },
  };
}

/** Synchronous, so that the last lines before an exit are not lost; a reader that went away is no reason to stop. */
function writeStderr(line: string): void {
  try {
    writeSync(2, line);
  } catch {
    // Nothing reads the log: there is nowhere to say so.
  }
}

const LETTERS: Readonly<Record<string, string>> = { info: "I", warn: "W", error: "E" };
const HEADER = new Set(["level", "ts", "msg", "v"]);

/**
 * One JSON log line in klog's text form, which log collectors of clusters know:
 * `I0131 03:58:31.755000    4711 fairlead] "Sync done" ipFamily="IPv4" milliseconds=12`.
 * Values are quoted, so that none of them can begin a line of its own.
 */
function textLine(json: string, pid: number): string {
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
