import type { Polled } from "../polled.ts";

/** Whether a node is asked again and again, and the way to end that, or to go on. */
export function Watched({ polled: { running, setRunning } }: { readonly polled: Polled<unknown> }) {
  return (
    <>
      {!running && (
        <span class="badge plain" role="status">
          stopped
        </span>
      )}
      <button type="button" onClick={() => setRunning(!running)}>
        {running ? "Stop" : "Go on"}
      </button>
    </>
  );
}
