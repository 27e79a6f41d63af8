/** Asks a console as its page does. */
export class ConsoleClient {
  readonly #base: string;
  readonly #headers: Readonly<Record<string, string>>;

  private constructor(base: string, headers: Readonly<Record<string, string>>) {
    this.#base = base;
    this.#headers = headers;
  }

  /** @param url as the console prints it: good for one visitor, once */
  static async open(url: string): Promise<ConsoleClient> {
    const [base = "", token = ""] = url.split("#token=");
    const headers = { origin: new URL(base).origin };
    const answer = await fetch(`${base}session`, { method: "POST", headers, body: JSON.stringify({ token }) });
    if (!answer.ok) throw new Error(`${base} refuses the token: ${await answer.text()}`);
    const [cookie = ""] = (answer.headers.get("set-cookie") ?? "").split(";");
    return new ConsoleClient(base, { ...headers, cookie });
  }

  /** @param path such as `api/networks` */
  async ask(path: string): Promise<Readonly<Record<string, unknown>>> {
    return JSON.parse(await (await fetch(`${this.#base}${path}`, { headers: this.#headers })).text());
  }

  /** Selects a node, and gives what the first look at its kernel says; the row that says "asking" is not the answer. */
  async kernelOf(node: string): Promise<unknown> {
    for await (const { name, data } of this.#events()) {
      if (name === "whole") await this.#view(String(data["stream"]), node);
      const rows: unknown = name === "nodes" ? data["rows"] : [];
      for (const row of Array.isArray(rows) ? rows : []) {
        if (row.node === node && (row.kernel?.state ?? "asking") !== "asking") return row.kernel;
      }
    }
    throw new Error("the console ended its events");
  }

  async #view(stream: string, ...nodes: readonly string[]): Promise<void> {
    const body = JSON.stringify({ stream, nodes });
    await fetch(`${this.#base}api/view`, { method: "POST", headers: this.#headers, body });
  }

  async *#events(): AsyncGenerator<{ readonly name: string; readonly data: Readonly<Record<string, unknown>> }> {
    const { body } = await fetch(`${this.#base}events`, { headers: this.#headers });
    let text = "";
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      text += piece;
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, "m").exec(block)?.[1] ?? "";
        yield { name: field("event"), data: JSON.parse(field("data")) };
      }
    }
  }
}
