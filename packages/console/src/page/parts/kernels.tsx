import { agentVerdict, type Difference, kernelVerdict } from "../findings.ts";
import type { Store } from "../store.ts";
import { Age } from "./age.tsx";
import { Badge } from "./badge.tsx";
import { Findings } from "./findings.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";

interface Props {
  readonly store: Store;
  readonly nodes: readonly string[];
  /** Of the service that is shown. */
  readonly differences: readonly Difference[];
}

/** The plan against the kernels of the nodes that matter to a service. */
export function Kernels({ store, nodes, differences }: Props) {
  const rows = nodes.flatMap((node) => store.nodes.get(node) ?? []);
  return (
    <section class="panel" aria-label="Plan and kernel">
      <h2>Plan and kernel</h2>
      <Scroll label="Plan and kernel">
        <table>
          <TableHead titles={["Node", "Agent", "This service in its kernel"]} />
          <tbody>
            {rows.map((row) => {
              const { node, agent, kernel } = row;
              const own = differences.filter((one) => one.node === node);
              const verdict =
                kernel?.state === "read"
                  ? own.length > 0
                    ? ({ tone: "bad", text: "differs" } as const)
                    : ({ tone: "good", text: "as planned" } as const)
                  : kernelVerdict(kernel);
              return (
                <tr key={node}>
                  <th scope="row">{node}</th>
                  <td>
                    <Badge {...agentVerdict(row)} /> {agent !== undefined && <Age source="" at={agent.at} />}
                    {agent?.state === "failed" && <span class="quiet"> {agent.error}</span>}
                  </td>
                  <td>
                    <Badge {...verdict} /> {kernel !== undefined && <Age source={`kernel of ${node}`} at={kernel.at} />}
                    {kernel?.state === "failed" && <span class="quiet"> {kernel.error}</span>}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </Scroll>
      <Findings differences={differences} />
    </section>
  );
}
