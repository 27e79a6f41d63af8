import type { Fields, Log } from "../../src/log.ts";

export interface Line {
  readonly level: "info" | "warn" | "error" | "verbose";
  readonly message: string;
  readonly fields: Fields;
}

/** A log that keeps its lines. */
export function recordedLog(): Log & { readonly lines: Line[]; messages(level?: Line["level"]): string[] } {
  const lines: Line[] = [];
  const keep =
    (level: Line["level"]) =>
    (message: string, fields: Fields = {}) => {
      lines.push({ level, message, fields });
    };
  return {
    lines,
    messages: (level) =>
      lines.filter((line) => level === undefined || line.level === level).map((line) => line.message),
    info: keep("info"),
    warn: keep("warn"),
    error: keep("error"),
    verbose: (_verbosity, message, fields) => keep("verbose")(message, fields),
  };
}
