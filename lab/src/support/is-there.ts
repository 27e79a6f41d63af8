import { access } from "node:fs/promises";

/** Whether there is such a file or folder, and one may look at it. */
export function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
