/** The kernel's overflow ID, an account without rights; in a user namespace without it the process keeps its own. */
const OVERFLOW_ID = 65_534;

/** From now on this process has only the rights of all users. */
export function dropRights(): void {
  try {
    process.setgroups?.([]);
    process.setgid?.(OVERFLOW_ID);
    process.setuid?.(OVERFLOW_ID);
  } catch (error) {
    if (process.getuid?.() === 0 && process.env["USER"] === "root") throw error;
  }
}
