import type { Clock } from "../clock.ts";

/** Bites when it is left watching for too long at a stretch. */
export interface Watchdog {
  readonly seconds: number;
  watch(): void;
  rest(): void;
  bit(): boolean;
}

export function watchdog(clock: Clock, milliseconds: number, bite: () => void): Watchdog {
  let cancel: (() => void) | undefined;
  let bitten = false;
  const rest = () => {
    cancel?.();
    cancel = undefined;
  };
  const watch = () => {
    rest();
    cancel = clock.after(milliseconds, () => {
      bitten = true;
      bite();
    });
  };
  return { seconds: milliseconds / 1000, watch, rest, bit: () => bitten };
}
