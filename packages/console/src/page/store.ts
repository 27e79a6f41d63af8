/** What the page knows: what the stream says, and what the page asks for once or again and again. */

import { useEffect, useLayoutEffect, useReducer, useState } from "preact/hooks";
import type { ConsoleFacts, NodeRow, ServiceRow, SourceAnswer, StreamEvents, UnusableAnswer } from "../protocol.ts";

/** What the stream has reported so far. */
export class Store {
  readonly rows = new Map<string, ServiceRow>();
  readonly nodes = new Map<string, NodeRow>();
  facts: ConsoleFacts | undefined;
  unusable: UnusableAnswer = { objects: 0, rows: [] };
  source: SourceAnswer = {};
  /** When the last change of an object was taken in, by the server's clock. */
  objectsAt = 0;
  /** To the console itself. */
  link: "opening" | "live" | "lost" | "closed" = "opening";
  /** Grows with every change. */
  revision = 0;
  #keys: readonly string[] | undefined;
  #stream = "";
  #view: { readonly nodes: readonly string[]; readonly traffic: boolean } = { nodes: [], traffic: false };
  #pending = false;
  /** Whether a view is on its way to the server, and whether another one is to follow. */
  readonly #reporting = { now: false, again: false };
  readonly #readers = new Set<() => void>();

  /** Names of all services, in their order. */
  get keys(): readonly string[] {
    this.#keys ??= [...this.rows.keys()].sort();
    return this.#keys;
  }

  connect(): void {
    const events = new EventSource("events");
    document.addEventListener("visibilitychange", () => void this.#reportView());
    const on = <K extends keyof StreamEvents>(name: K, take: (data: StreamEvents[K]) => void) => {
      events.addEventListener(name, (event) => {
        take(JSON.parse(event.data));
        this.link = this.facts === undefined ? "opening" : "live";
        this.#changed();
      });
    };
    on("begin", (data) => this.#begin(data));
    on("services", (data) => this.#services(data));
    on("nodes", ({ rows, gone }) => {
      for (const row of rows) this.nodes.set(row.node, row);
      for (const node of gone) this.nodes.delete(node);
    });
    on("source", (data) => {
      this.source = data;
    });
    on("unusable", (data) => {
      this.unusable = data;
    });
    events.addEventListener("whole", (event) => {
      this.link = "live";
      this.#stream = JSON.parse(event.data).stream;
      void this.#reportView();
      this.#changed();
    });
    events.addEventListener("error", () => {
      this.link = events.readyState === EventSource.CLOSED ? "closed" : "lost";
      this.#changed();
    });
  }

  /** The nodes that are shown now, and that are to be looked at; with traffic their connections are summed up too. */
  look(nodes: readonly string[], traffic = false): void {
    if (nodes.join() === this.#view.nodes.join() && traffic === this.#view.traffic) return;
    this.#view = { nodes, traffic };
    void this.#reportView();
  }

  subscribe(reader: () => void): () => void {
    this.#readers.add(reader);
    return () => this.#readers.delete(reader);
  }

  #begin({ facts, nodes, objectsAt, unusable, source }: StreamEvents["begin"]): void {
    this.facts = facts;
    this.unusable = unusable;
    this.source = source;
    this.objectsAt = objectsAt;
    this.rows.clear();
    this.nodes.clear();
    this.#keys = undefined;
    for (const row of nodes) this.nodes.set(row.node, row);
  }

  #services({ rows, gone, objectsAt }: StreamEvents["services"]): void {
    this.objectsAt = objectsAt;
    const before = this.rows.size;
    for (const row of rows) this.rows.set(row.service, row);
    for (const key of gone) this.rows.delete(key);
    if (this.rows.size !== before || gone.length > 0) this.#keys = undefined;
  }

  /** One at a time: of two at once the older one can come last. Of those that wait only the newest is sent. */
  async #reportView(): Promise<void> {
    this.#reporting.again = true;
    if (this.#reporting.now) return;
    this.#reporting.now = true;
    while (this.#reporting.again) {
      this.#reporting.again = false;
      await this.#sendView();
    }
    this.#reporting.now = false;
  }

  async #sendView(): Promise<void> {
    if (this.#stream === "" || this.facts?.kernels !== true) return;
    // Nodes are not looked at for a page that is not in view.
    const view = document.hidden ? { nodes: [], traffic: false } : this.#view;
    const body = JSON.stringify({ stream: this.#stream, ...view });
    // A stream that is gone comes back with another name, and the page reports again.
    await fetch("api/view", { method: "POST", body }).catch(() => undefined);
  }

  /** What comes in one frame is shown at once. */
  #changed(): void {
    this.revision += 1;
    if (this.#pending) return;
    this.#pending = true;
    setTimeout(() => {
      this.#pending = false;
      for (const reader of this.#readers) reader();
    }, 30);
  }
}

/** Shows the component again whenever the store has changed. */
export function useStore(store: Store): void {
  const [, again] = useReducer((count: number, _: undefined) => count + 1, 0);
  // With the rendering itself: an effect comes a frame later, and what the server sends until then would not be shown.
  useLayoutEffect(() => store.subscribe(() => again(undefined)), [store]);
}

export type RequestState<T> =
  | { readonly state: "asking"; readonly before?: T }
  | { readonly state: "answered"; readonly answer: T }
  | { readonly state: "failed"; readonly error: string };

/** Asks the server, and again whenever `path` or `revision` changes; the last answer is shown meanwhile. */
export function useAnswer<T>(path: string, revision: unknown): RequestState<T> {
  const [asked, setAsked] = useState<{ readonly path: string; readonly is: RequestState<T> }>({
    path,
    is: { state: "asking" },
  });
  useEffect(() => {
    const stop = new AbortController();
    ask<T>(path, undefined, stop.signal).then((is) => {
      if (!stop.signal.aborted) setAsked({ path, is });
    });
    return () => stop.abort();
  }, [path, revision]);
  return asked.path === path ? asked.is : { state: "asking" };
}

/** @param body is sent by POST; absent: GET */
export async function ask<T>(path: string, body?: unknown, signal?: AbortSignal): Promise<RequestState<T>> {
  try {
    const sent = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const answer = await fetch(path, { ...sent, ...(signal && { signal }) });
    const data = await answer.json();
    return answer.ok ? { state: "answered", answer: data } : { state: "failed", error: String(data.error) };
  } catch (error) {
    return { state: "failed", error: `the console does not answer: ${error instanceof Error ? error.message : error}` };
  }
}

/** Whether nodes are asked again and again. */
export interface Running {
  readonly running: boolean;
  readonly setRunning: (running: boolean) => void;
}

export interface Polled<T> extends Running {
  readonly asked: RequestState<T>;
}

/** Milliseconds after which it stops by itself: pages are left open, and nodes have better things to do. */
const LONGEST = 10 * 60_000;

/** @param what another one begins anew */
export function useRunning(what: string): Running {
  const [running, setRunning] = useState(true);
  useEffect(() => {
    if (!running) return;
    const bound = setTimeout(() => setRunning(false), LONGEST);
    return () => clearTimeout(bound);
  }, [what, running]);
  return { running, setRunning };
}

/**
 * Asks the server again and again, while the page is in view and not for ever. Nothing looks between the questions:
 * a page that stops asking costs nothing.
 *
 * @param path another one begins anew
 */
export function usePolled<T>(path: string): Polled<T> {
  const bounded = useRunning(path);
  const [asked, setAsked] = useState<{ readonly path: string; readonly is: RequestState<T> }>({
    path,
    is: { state: "asking" },
  });
  useEffect(() => {
    if (!bounded.running) return;
    const stop = new AbortController();
    void follow<T>(path, stop.signal, (is) => setAsked({ path, is }));
    return () => stop.abort();
  }, [path, bounded.running]);
  return { asked: asked.path === path ? asked.is : { state: "asking" }, ...bounded };
}

/** Milliseconds between an answer and the next question. */
const PAUSE = 2_000;

async function follow<T>(path: string, signal: AbortSignal, take: (is: RequestState<T>) => void): Promise<void> {
  while (!signal.aborted) {
    await inView(signal);
    const is = await ask<T>(path, undefined, signal);
    if (signal.aborted) return;
    take(is);
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
  }
}

function inView(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (!document.hidden || signal.aborted) return resolve();
    document.addEventListener("visibilitychange", () => resolve(), { once: true, signal });
    signal.addEventListener("abort", () => resolve());
  });
}
