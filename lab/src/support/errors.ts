import { errorText } from "@fairlead/base";
/** What an error says, whatever was thrown; of errors that came while others were cleaned up after, all of them. */
export function messageOf(error: unknown): string {
  if (error instanceof SuppressedError) return `${messageOf(error.suppressed)}; then ${messageOf(error.error)}`;
  return errorText(error);
}
