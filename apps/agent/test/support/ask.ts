import { Readable } from "node:stream";
import { type App, answerTo, type HttpRequest } from "../../src/http/app.ts";

/** An app's answer, as a client would have it. */
export async function ask(app: App, url: string, more: Partial<HttpRequest> = {}): Promise<Response> {
  const { pathname, searchParams } = new URL(url, "http://agent.test");
  const { status, headers, body } = await answerTo(app, pathname, {
    method: "GET",
    query: searchParams,
    accept: "",
    local: true,
    gone: new AbortController().signal,
    ...more,
  });
  const content =
    body instanceof Readable ? new Response(Readable.toWeb(body) as ReadableStream).body : Buffer.from(body);
  return new Response(content, { status, headers });
}
