import { instanceOfTable, type NodeFacts } from "@fairlead/inspect";
import { nodeLockProcess } from "@fairlead/kernel";

/**
 * Agents with a service proxy name, by the tables that they have on a node.
 *
 * @param tables `ip fairlead-edge`; undefined: they cannot be listed
 * @param own the name of the agent that is looked at, which is left out
 * @param seesAll whether each process of the node would be seen from here
 */
export async function otherInstances(
  tables: readonly string[] = [],
  own: string,
  seesAll: boolean,
): Promise<NonNullable<NodeFacts["instances"]>> {
  const byName = Map.groupBy(tables, (table) => instanceOfTable(table.slice(table.indexOf(" ") + 1)));
  const found = [...byName].map(async ([name, its]) => {
    if (name === undefined || name === own) return [];
    const pid = seesAll ? await nodeLockProcess(name).catch(() => undefined) : undefined;
    return [{ name, tables: its, running: seesAll ? pid !== undefined : undefined }];
  });
  return (await Promise.all(found)).flat();
}
