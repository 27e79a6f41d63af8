import { writeSync } from "node:fs";
import { withoutHidden } from "@fairlead/core";
import { pino } from "pino";
import type { Fields, Log } from "./log.ts";
import { textLine } from "./text.ts";

export interface LogOptions {
  readonly format: "text" | "json";
  /** -v */
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
