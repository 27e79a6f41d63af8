/** A request to the API server, as the relay saw it. Times in milliseconds since the epoch. */
export interface SeenRequest {
  readonly at: number;
  readonly method: string;
  /** With its query. */
  readonly path: string;
  /** 0: no answer yet, or none. */
  status: number;
  /** Of the answer's body as it was sent, compressed or not. */
  bytes: number;
  readonly protocol: string;
  /** Content-Encoding of the answer; "": none. */
  encoding: string;
  /** Undefined: it is under way. */
  endedAt?: number;
}

/** What the relay has seen since its start. */
export interface Recording {
  readonly requests: readonly SeenRequest[];
  /** Address → when it first came by in a watch. */
  readonly addresses: Readonly<Record<string, number>>;
}

/** Requests and bytes, in all or of some. */
export interface Traffic {
  readonly requests: number;
  readonly bytes: number;
}

/** `list`: also a watch that begins with all objects. */
export type RequestKind = "list" | "watch" | "other";

function kindOf({ method, path }: Pick<SeenRequest, "method" | "path">): RequestKind {
  const { pathname, searchParams } = new URL(path, "http://api");
  if (method !== "GET" || !/^\/apis?\//.test(pathname)) return "other";
  if (searchParams.has("sendInitialEvents")) return "list";
  return searchParams.get("watch") === "true" ? "watch" : "list";
}

/** What came between two recordings of one relay, by kind of request. */
export function trafficBetween(before: Recording, after: Recording): Readonly<Record<RequestKind, Traffic>> {
  const traffic = {
    list: { requests: 0, bytes: 0 },
    watch: { requests: 0, bytes: 0 },
    other: { requests: 0, bytes: 0 },
  };
  for (const [index, request] of after.requests.entries()) {
    const earlier = before.requests[index];
    const of = traffic[kindOf(request)];
    of.requests += earlier === undefined ? 1 : 0;
    of.bytes += request.bytes - (earlier?.bytes ?? 0);
  }
  return traffic;
}

export function bytesBetween(before: Recording, after: Recording): number {
  return Object.values(trafficBetween(before, after)).reduce((sum, { bytes }) => sum + bytes, 0);
}
