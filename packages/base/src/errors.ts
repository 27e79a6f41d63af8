/** How many causes are in the text. */
const CAUSES = 5;

/**
 * What an error says, for a line of text: its message, or its name where it has none.
 *
 * @param error anything that was thrown
 */
export function errorText(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // Node gives "" for a connection that was tried on several addresses: the causes are in `errors`.
  if (error instanceof AggregateError && error.message === "") return error.errors.map(errorText).join("; ");
  return error.message === "" ? error.name : error.message;
}

/** As {@link errorText}, with what its causes say and it does not: `listing failed: connect ECONNREFUSED`. */
export function errorChainText(error: unknown): string {
  const texts: string[] = [];
  for (let current = error; current !== undefined && texts.length < CAUSES; ) {
    const text = errorText(current);
    if (!texts.some((said) => said.includes(text))) texts.push(text);
    current = current instanceof Error ? current.cause : undefined;
  }
  return texts.join(": ");
}

/** An error as it is; anything else that was thrown as the message of one. */
export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error), { cause: error });
}

/**
 * Does one work after the other, whatever becomes of those before it.
 *
 * @throws AggregateError with this message and all that failed, after the last one
 */
export async function attemptAll(works: Iterable<() => Promise<void>>, message: string): Promise<void> {
  const failures: unknown[] = [];
  for (const work of works) await work().catch((error: unknown) => failures.push(error));
  if (failures.length > 0) throw new AggregateError(failures, message);
}

/** The `code` of a system error, or of another that has one: `ENOENT`, `ERR_WORKER_OUT_OF_MEMORY`; else undefined. */
export function errorCode(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
