/**
 * Milliseconds, real ones, that a test waits for what comes at once on a quiet machine: the end of a hang. Below the
 * limit of the tests themselves, so that a failure says what never came.
 */
export const PATIENCE_MS = 300_000;
