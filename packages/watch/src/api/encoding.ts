import { errorText } from "@fairlead/base";
import { isProtobuf, JSON_TYPE, PROTOBUF_TYPE } from "../protobuf-messages.ts";
import type { OnReport } from "../report.ts";
import type { ResourceSpec } from "../resources.ts";
import { ApiError, ProtocolError } from "./errors.ts";
import { type CutEvents, jsonEvents, protobufEvents } from "./events.ts";
import { type ListParser, listParser, protobufListParser } from "./lists.ts";

/**
 * How the objects of one resource come. Protobuf is asked for where it is wanted and the kind is known, with JSON as
 * the server's other choice, until it has not worked once; from then on JSON.
 */
export class Encoding {
  readonly #spec: ResourceSpec;
  readonly #onReport: OnReport;
  #asksProtobuf: boolean;
  /** Of the last answer; undefined: there is none, or protobuf was not requested. */
  #came: "protobuf" | "json" | undefined;

  constructor(spec: ResourceSpec, wantsProtobuf: boolean, onReport: OnReport) {
    this.#spec = spec;
    this.#onReport = onReport;
    this.#asksProtobuf = wantsProtobuf && spec.protobuf !== undefined;
  }

  /** The Accept header of the next request. */
  get accept(): string {
    return this.#asksProtobuf ? `${PROTOBUF_TYPE}, ${JSON_TYPE}` : JSON_TYPE;
  }

  /** @param contentType of the answer */
  listParser(contentType: string | undefined): ListParser {
    const kind = this.#kindIn(contentType);
    return kind === undefined ? listParser() : protobufListParser(kind);
  }

  /** @param contentType of the answer */
  events(contentType: string | undefined): CutEvents {
    const kind = this.#kindIn(contentType);
    return kind === undefined ? jsonEvents() : protobufEvents(kind);
  }

  /** Whether it was protobuf that failed: JSON is to be tried in its place, at once. */
  fallBack(error: unknown): boolean {
    const notOffered = error instanceof ApiError && (error.code === 406 || error.code === 415);
    const notUnderstood = error instanceof ProtocolError && this.#came === "protobuf";
    if (!this.#asksProtobuf || !(notOffered || notUnderstood)) return false;
    this.#asksProtobuf = false;
    this.#report("json", errorText(error));
    return true;
  }

  #kindIn(contentType: string | undefined) {
    const { kind, protobuf: definition } = this.#spec;
    const came = isProtobuf(contentType) && definition !== undefined ? { kind, definition } : undefined;
    if (this.#asksProtobuf) this.#report(came === undefined ? "json" : "protobuf");
    return came;
  }

  #report(encoding: "protobuf" | "json", why?: string): void {
    if (this.#came === encoding) return;
    this.#came = encoding;
    const { name: resource } = this.#spec;
    this.#onReport({ type: "encoding", resource, encoding, ...(why !== undefined && { why }) });
  }
}
