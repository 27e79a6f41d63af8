import { nextTurn } from "@fairlead/base";

/** A process was started in this turn of the event loop. */
let taken = false;

/**
 * Waits for a turn of the event loop in which no process has been started, at best this one. Node starts a process in
 * its own thread, and the fork copies the page tables of all that is resident: some milliseconds, during which nothing
 * is answered.
 */
export async function ownTurn(): Promise<void> {
  while (taken) await nextTurn();
  taken = true;
  nextTurn().then(() => {
    taken = false;
  });
}
