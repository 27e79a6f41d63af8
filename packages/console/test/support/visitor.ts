import { request } from "node:http";

export interface Told {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  readonly text: string;
}

/** Asks as a program does, with whatever headers it likes. */
export function visit(
  url: string,
  { method = "GET", headers = {}, body }: { method?: string; headers?: Record<string, string>; body?: string } = {},
): Promise<Told> {
  return new Promise((resolve, reject) => {
    const asked = request(url, { method, headers, agent: false }, async (response) => {
      let text = "";
      for await (const piece of response.setEncoding("utf8")) text += piece;
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
    });
    asked.on("error", reject);
    asked.end(body);
  });
}

/** What the address that is printed is made of. */
export function addressOf(url: string): { readonly base: string; readonly origin: string; readonly token: string } {
  const [base = "", token = ""] = url.split("#token=");
  return { base, origin: new URL(url).origin, token };
}

/** Exchanges the token. */
export async function cookieOf(url: string): Promise<string> {
  const { base, origin, token } = addressOf(url);
  const { headers } = await visit(`${base}session`, {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token }),
  });
  const [cookie = ""] = headers["set-cookie"] ?? [];
  return cookie.split(";", 1)[0] ?? "";
}
