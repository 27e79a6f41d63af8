import { useEffect, useState } from "preact/hooks";

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
