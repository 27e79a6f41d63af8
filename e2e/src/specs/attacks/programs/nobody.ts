/** The number of "nobody" on every machine; in a user namespace that does not have it the caller stays who it is. */
const NOBODY = 65_534;

/** From now on this process has no rights but everybody's. */
export function becomeNobody(): void {
  try {
    process.setgroups?.([]);
    process.setgid?.(NOBODY);
    process.setuid?.(NOBODY);
  } catch (error) {
    if (process.getuid?.() === 0 && process.env["USER"] === "root") throw error;
  }
}
