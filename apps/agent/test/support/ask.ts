import { Readable } from "node:stream";
import { type App, answerTo } from "../../src/http/app.ts";

/** An app's answer, as a client would have it. */
export async function ask(app: App, url: string): Promise<Response> {
  const { pathname, searchParams } = new URL(url, "http://agent.test");
  const { status, headers, body } = await answerTo(app, pathname, searchParams);
  const content = body instanceof Readable ? new Response(Readable.toWeb(body) as ReadableStream).body : body;
  return new Response(content, { status, headers });
}
