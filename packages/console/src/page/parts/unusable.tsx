import type { UnusableAnswer } from "../../protocol/index.ts";
import { Age } from "./age.tsx";
import { Scroll } from "./scroll.tsx";
import { TableHead } from "./table-head.tsx";

/** Objects that agents leave out, or take without some of their fields, and why. */
export function Unusable({ unusable: { objects, rows } }: { readonly unusable: UnusableAnswer }) {
  if (objects === 0) return null;
  const told = new Set(rows.map(({ object }) => object)).size;
  return (
    <section class="panel" aria-label="Objects that cannot be read">
      <h2>
        {objects} {objects === 1 ? "object" : "objects"} cannot be read, or not whole
      </h2>
      <Scroll label="Objects that cannot be read">
        <table>
          <TableHead titles={["Object", "Field", "Value", "Why", "Found"]} />
          <tbody>
            {rows.map(({ object, at, field, value, why, file }) => (
              <tr key={`${object} ${field} ${why}`}>
                <th scope="row">{object}</th>
                <td class="mono">{field === "" ? "–" : field}</td>
                <td class="mono">{value === "" ? "–" : value}</td>
                <td>
                  {why}
                  {file !== undefined && <div class="quiet">{file}</div>}
                </td>
                <td>
                  <Age source="" at={at} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </Scroll>
      {objects > told && <p class="quiet">and {objects - told} more objects</p>}
    </section>
  );
}
