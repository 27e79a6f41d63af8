/**
 * Headers as the Go services of Kubernetes send them: no charset on JSON, and no guessing of types on anything.
 */
export const PLAIN_TEXT = {
  "Content-Type": "text/plain; charset=utf-8",
  "X-Content-Type-Options": "nosniff",
} as const;

export const JSON_TYPE = {
  "Content-Type": "application/json",
  "X-Content-Type-Options": "nosniff",
} as const;

/** A time as Go's encoding/json writes it (RFC3339Nano: no trailing zeros); its zero value where there is none. */
export function goTime(ms: number): string {
  return ms === 0 ? "0001-01-01T00:00:00Z" : new Date(ms).toISOString().replace(/\.?0*Z$/, "Z");
}
