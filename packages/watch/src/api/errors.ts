import { errorText, isObject, objectAt, objectsAt, textAt, valueAt } from "@fairlead/base";
import { isProtobuf, readStatus } from "../protobuf-messages.ts";
import type { ApiResponse } from "./http.ts";

/** The API server answered with something other than what was asked for: an HTTP status or an ERROR event. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly code: number;
  /** metav1.StatusReason, "" where there is none. */
  readonly reason: string;
  /** The server's cache is behind the resourceVersion that was asked for, or will never have it. */
  readonly versionTooLarge: boolean;
  /** From the Retry-After header. */
  readonly retryAfterMilliseconds: number | undefined;

  constructor(code: number, status: unknown, retryAfterMilliseconds?: number) {
    const message = textAt(status, "message") ?? "";
    super(`${code}${message === "" ? "" : ` ${message.slice(0, MAX_MESSAGE)}`}`);
    this.code = code;
    this.reason = textAt(status, "reason") ?? "";
    this.retryAfterMilliseconds = retryAfterMilliseconds;
    const causes = objectsAt(objectAt(status, "details"), "causes");
    this.versionTooLarge =
      causes.some((cause) => textAt(cause, "reason") === "ResourceVersionTooLarge") ||
      message.includes("Too large resource version");
  }

  /** The resourceVersion or the continue token is no longer known (410). */
  get expired(): boolean {
    return this.code === 410 || this.reason === "Expired" || this.reason === "Gone";
  }
}

/** The stream's content is not what the API speaks. */
export class ProtocolError extends Error {
  override readonly name = "ProtocolError";
}

/** @throws ProtocolError instead of what reading throws, which names what was read */
export function asProtocol<T>(what: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw new ProtocolError(`${what}: ${errorText(error)}`);
  }
}

/** The response began well and broke off, or stood still for too long. */
export class BrokenResponseError extends Error {
  override readonly name = "BrokenResponseError";
}

/** The connection stands, and the server on it gives no sign of life. */
export class SilentServerError extends Error {
  override readonly name = "SilentServerError";
}

/** Characters of the server's message that are passed on. */
const MAX_MESSAGE = 1000;
/** A Status of a few hundred bytes is expected; more is not read. */
const MAX_STATUS_BYTES = 64 * 1024;
const MAX_RETRY_AFTER_SECONDS = 300;

export async function errorOf(response: ApiResponse): Promise<ApiError> {
  const bytes = await beginningBytesOf(response.body);
  const status = isProtobuf(response.header("content-type")) ? statusInProtobuf(bytes) : statusOf(bytes.toString());
  return new ApiError(response.status, status, retryAfter(response.header("retry-after")));
}

export function errorOfEvent(status: unknown): ApiError {
  const code = valueAt(status, "code");
  return new ApiError(typeof code === "number" ? code : 500, status);
}

/** Not more than 64 KiB of it. */
export async function beginningOf(body: AsyncIterable<Uint8Array>): Promise<string> {
  return (await beginningBytesOf(body)).toString();
}

async function beginningBytesOf(body: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    chunks.push(chunk);
    size += chunk.length;
    if (size > MAX_STATUS_BYTES) break;
  }
  return Buffer.concat(chunks).subarray(0, MAX_STATUS_BYTES);
}

function statusOf(text: string): unknown {
  try {
    const status: unknown = JSON.parse(text);
    if (isObject(status)) return status;
  } catch {
    // A proxy's page or a bare line instead of a Status: its beginning is all there is to say.
  }
  return { message: text.slice(0, 200).trim() };
}

function statusInProtobuf(bytes: Uint8Array): unknown {
  try {
    return readStatus(bytes);
  } catch (error) {
    return { message: `with an unreadable status: ${errorText(error)}` };
  }
}

/** Seconds only; a date, which no API server sends, is ignored. */
function retryAfter(header: string | undefined): number | undefined {
  if (header === undefined || !/^\d+$/.test(header)) return undefined;
  return Math.min(Number(header), MAX_RETRY_AFTER_SECONDS) * 1000;
}
