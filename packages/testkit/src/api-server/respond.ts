import type { ServerResponse } from "node:http";

/** A line of a watch. */
export function line(type: string, object: unknown): string {
  return `${JSON.stringify({ type, object })}\n`;
}

export function json(response: ServerResponse, code: number, body: unknown): ServerResponse {
  response.writeHead(code, { "content-type": "application/json" });
  return response.end(JSON.stringify(body));
}

export function fail(response: ServerResponse, code: number, reason: string, message: string): ServerResponse {
  return json(response, code, { kind: "Status", status: "Failure", code, reason, message });
}

export function tooLarge(response: ServerResponse, wanted: number, current: number): ServerResponse {
  const details = { causes: [{ reason: "ResourceVersionTooLarge", message: "Too large resource version" }] };
  const message = `Too large resource version: ${wanted}, current: ${current}`;
  return json(response, 504, { kind: "Status", status: "Failure", code: 504, reason: "Timeout", message, details });
}
