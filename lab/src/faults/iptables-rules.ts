import type { Runner } from "@fairlead/kernel";

/** Something done to the rules by hand. */
export type Damage =
  | { readonly remove: RegExp; readonly table: "nat" | "filter" }
  | { readonly insert: readonly string[]; readonly table: "nat" | "filter" };

/**
 * Deletes every rule whose line in iptables-save matches, or inserts one.
 *
 * @throws Error when no rule matches: the damage would prove nothing
 */
export async function inflict(runner: Runner, damage: Damage): Promise<void> {
  const { table } = damage;
  if ("insert" in damage) {
    await runner.run(["iptables", "-t", table, "-I", ...damage.insert]);
    return;
  }
  const { stdout } = await runner.run(["iptables-save", "-t", table]);
  const rules = stdout.split("\n").filter((line) => line.startsWith("-A ") && damage.remove.test(line));
  if (rules.length === 0) throw new Error(`no rule of ${table} matches ${damage.remove}`);
  const deletions = rules.map((line) => `-D ${line.slice("-A ".length)}`);
  const payload = [`*${table}`, ...deletions, "COMMIT", ""].join("\n");
  await runner.run(["iptables-restore", "--noflush"], { input: payload });
}
