import type { RequestState } from "../ask.ts";

/** In place of what is not there yet, or cannot be told. */
export function Waiting({ title, asked }: { readonly title?: string; readonly asked: RequestState<unknown> }) {
  return (
    <>
      {title !== undefined && (
        <div class="head">
          <h1>{title}</h1>
        </div>
      )}
      {asked.state === "failed" ? (
        <p class="notice bad" role="alert">
          {asked.error}
        </p>
      ) : (
        <p role="status">asking …</p>
      )}
    </>
  );
}
