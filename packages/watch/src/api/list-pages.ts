import type { ListSession } from "../publisher.ts";
import type { ResourceSpec } from "../resources.ts";
import type { Encoding } from "./encoding.ts";
import { ProtocolError } from "./errors.ts";
import { readList } from "./list.ts";
import { listPath, PAGE_SIZE, pagePath } from "./query.ts";
import type { ReflectorPorts } from "./reflector-ports.ts";
import { get } from "./request.ts";

/** The API server's own limit for a request that is no watch is 60 s. */
const LIST_IDLE = 65_000;

export interface ListRequest {
  readonly spec: ResourceSpec;
  readonly encoding: Encoding;
  /** As one answer, or in pages. */
  readonly mode: "list" | "chunks";
  /** The resource version to ask for, of a list that is one answer; undefined: the newest. */
  readonly version: string | undefined;
}

/**
 * Reads a list into the session, page by page. Full pages don't count against qps; what would keep asking for little or
 * nothing does.
 *
 * @returns its resource version
 * @throws ProtocolError when a page brings nothing new and names another one
 */
export async function listPages(
  { requester, takeToken }: Pick<ReflectorPorts, "requester" | "takeToken">,
  { spec, encoding, mode, version }: ListRequest,
  session: ListSession,
  signal: AbortSignal,
): Promise<string> {
  const page = (path: string) => {
    const request = { path, accept: encoding.accept, idleMilliseconds: LIST_IDLE, signal };
    return get(requester, request, (chunks, type) => readList(chunks, session, encoding.listParser(type)));
  };
  let before = 0;
  let head = await page(mode === "list" ? listPath(spec, version) : pagePath(spec, undefined));
  while (head.next !== undefined) {
    const added = session.size - before;
    if (added === 0) throw new ProtocolError("a page of the list has no new objects but a continue token");
    before = session.size;
    if (added < PAGE_SIZE) await takeToken(signal);
    head = await page(pagePath(spec, head.next));
  }
  return head.resourceVersion;
}
